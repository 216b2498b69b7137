package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/local"
)

// The folder of an image is copied, and commands see it as /testbed.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "images-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	os.Mkdir(filepath.Join(root, "parser"), 0o755)
	os.WriteFile(filepath.Join(root, "parser", "main.py"), []byte("print(1)\n"), 0o644)

	driver, err := local.New(local.Options{Root: root})
	if err != nil {
		panic(err)
	}
	box, err := sandbox.On(driver).Create(ctx, sandbox.Spec{Image: "parser"})
	if err != nil {
		panic(err)
	}
	defer box.Close(ctx)
	r, err := box.Exec(ctx, sandbox.Command{Text: "pwd; rm main.py; ls missing"})
	fmt.Print(r.Stdout, r.ExitCode, err, "\n")
	_, err = os.Stat(filepath.Join(root, "parser", "main.py"))
	fmt.Println(err)
	// Output:
	// /testbed
	// 2 <nil>
	// <nil>
}
