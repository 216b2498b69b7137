//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// started runs a server and returns its address. stop ends it and waits.
func started(t *testing.T, args ...string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		err := run(ctx, args, w)
		w.CloseWithError(io.EOF)
		failed <- err
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		cancel()
		require.NoError(t, <-failed)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	require.True(t, ok, line)
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-failed)
		}
	}
	t.Cleanup(stop)
	return "http://" + addr, stop
}

func TestServersDrain(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "demo"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "demo", "a.py"), []byte("x\n"), 0o644))
	node, stopNode := started(t, "serve-exec", "--listen", "127.0.0.1:0", "--driver", "local", "--root", root)
	pool, stopPool := started(t, "serve-pool", "--listen", "127.0.0.1:0", "--nodes", node, "--per-node", "2", "--lease-ttl", "1m")
	containers := func() int {
		list, err := os.ReadDir(filepath.Join(root, ".containers"))
		require.NoError(t, err)
		return len(list)
	}
	ctx := context.Background()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	create := func(url string, direct bool) sandbox.Sandbox {
		c, err := swerl.NewClient(swerl.ClientOptions{URL: url, Direct: direct, Heartbeat: -1, HTTP: &http.Client{Transport: transport}})
		require.NoError(t, err)
		b, err := c.Create(ctx, sandbox.Spec{Image: "demo"})
		require.NoError(t, err)
		return b
	}
	leased := create(pool, false)
	direct := create(node, true)
	r, err := leased.Exec(ctx, sandbox.Command{Text: "cat a.py"})
	require.NoError(t, err)
	require.Equal(t, "x\n", r.Stdout)
	require.Equal(t, 2, containers())

	ended := make(chan error, 1)
	go func() {
		_, err := direct.Exec(ctx, sandbox.Command{Text: "sleep 30"})
		ended <- err
	}()
	stopPool()
	require.Equal(t, 1, containers(), "a pool that ends takes its containers along")
	time.Sleep(50 * time.Millisecond)
	stopNode()
	require.Zero(t, containers(), "and a node the others")
	require.Error(t, <-ended)
}

func TestServersRefuseFlags(t *testing.T) {
	for _, args := range [][]string{
		{"serve-exec", "--driver", "local"}, {"serve-exec", "--driver", "lxc"}, {"serve-exec", "x"},
		{"serve-pool", "--nodes", "here"}, {"serve-pool", "--per-node", "-1"}, {"serve-pool", "--nodes", ""},
	} {
		require.Error(t, run(context.Background(), args, io.Discard), args)
	}
}
