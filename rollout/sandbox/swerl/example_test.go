package swerl_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// A node with containers, a pool of that node, and a client: the same Provider as on one machine.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "images-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	os.Mkdir(filepath.Join(root, "parser"), 0o755)
	driver, err := local.New(local.Options{Root: root})
	if err != nil {
		panic(err)
	}
	exec, err := swerl.NewExecServer(ctx, swerl.ExecOptions{Driver: driver})
	if err != nil {
		panic(err)
	}
	node := httptest.NewServer(exec)
	defer node.Close()
	leases, err := swerl.NewPool(ctx, swerl.PoolOptions{Nodes: []string{node.URL}})
	if err != nil {
		panic(err)
	}
	pool := httptest.NewServer(leases)
	defer pool.Close()

	client, err := swerl.NewClient(swerl.ClientOptions{URL: pool.URL})
	if err != nil {
		panic(err)
	}
	box, err := client.Create(ctx, sandbox.Spec{Image: "parser", Instance: "parser__1"})
	if err != nil {
		panic(err)
	}
	defer box.Close(ctx)
	r, err := box.Exec(ctx, sandbox.Command{Text: "pwd", Env: map[string]string{"A": "b"}})
	fmt.Print(r.Stdout, err, "\n")
	// Output:
	// /testbed
	// <nil>
}
