package loop

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// node is a sandbox driver without processes.
type node struct {
	mu         sync.Mutex
	made, most int
	boxes      map[string]sandbox.Container
}

func (n *node) Create(_ context.Context, name string, spec sandbox.Spec) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	n.boxes[name] = sandbox.Container{ID: name, Name: name, Spec: spec, Created: time.Now()}
	n.most = max(n.most, len(n.boxes))
	return name, nil
}

func (n *node) Exec(_ context.Context, _ string, c sandbox.Command) (sandbox.Result, error) {
	switch {
	case strings.Contains(c.Text, "rev-parse"):
		return sandbox.Result{Stdout: "c0ffee\n"}, nil
	case strings.Contains(c.Text, "COMPLETE_TASK"):
		return sandbox.Result{Stdout: "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\ndiff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-1\n+2\n"}, nil
	case strings.Contains(c.Text, "run_tests"):
		return sandbox.Result{Stdout: "PASSED tests.py::test_add\nPASSED tests.py::test_neg\n"}, nil
	}
	return sandbox.Result{}, nil
}

func (n *node) Destroy(_ context.Context, id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.boxes, id)
	return nil
}

func (n *node) Containers(context.Context) (list []sandbox.Container, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.boxes {
		list = append(list, c)
	}
	return list, nil
}

func (n *node) Images(context.Context) ([]string, error) { return nil, nil }

// 128 attempts at once, from lease to grade, leave no goroutine, container or lease.
func TestManyAttempts(t *testing.T) {
	before := runtime.NumGoroutine()
	nodes, urls := []*node{}, []string{}
	var stop []func()
	for range 4 {
		n := &node{boxes: map[string]sandbox.Container{}}
		s, err := swerl.NewExecServer(t.Context(), swerl.ExecOptions{Driver: n})
		require.NoError(t, err)
		h := httptest.NewServer(s)
		nodes, urls, stop = append(nodes, n), append(urls, h.URL), append(stop, h.Close)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	p, err := swerl.NewPool(t.Context(), swerl.PoolOptions{Nodes: urls, PerNode: 40, HTTP: &http.Client{Transport: transport}})
	require.NoError(t, err)
	pool := httptest.NewServer(p)
	w := &world{sent: map[string][]string{}, data: filepath.Join(t.TempDir(), "train.jsonl"), pool: pool.URL}
	api := httptest.NewServer(w)
	w.api = api.URL
	require.NoError(t, os.WriteFile(w.data, []byte(row), 0o644))
	began := time.Now()
	said, err := w.rollout(t, filepath.Join(t.TempDir(), "out"), "--n", "128", "--max-concurrent", "128")
	require.NoError(t, err, said)
	require.Contains(t, said, "128 attempts: resolved 128")
	t.Logf("%v for 128 attempts of 3 turns", time.Since(began))

	made, most := 0, 0
	for _, n := range nodes {
		require.Empty(t, n.boxes)
		made, most = made+n.made, most+n.most
	}
	require.GreaterOrEqual(t, made, 256, "one to work in and one to be graded in")
	t.Logf("%d containers, at most %d at one time", made, most)
	answer, err := http.Get(pool.URL + "/status")
	require.NoError(t, err)
	defer answer.Body.Close()
	text := make([]byte, 4096)
	k, _ := answer.Body.Read(text)
	require.Contains(t, string(text[:k]), `"total_leases":0`)
	pool.Close()
	api.Close()
	transport.CloseIdleConnections()
	for _, f := range stop {
		f()
	}
	http.DefaultClient.CloseIdleConnections()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 10*time.Second, 20*time.Millisecond, "%d goroutines before", before)
	t.Logf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// What is whole is found again in a folder of any name.
func TestFinishedInAnyFolder(t *testing.T) {
	c := training{native: filepath.Join(t.TempDir(), "a[b]c")}
	require.NoError(t, os.Mkdir(c.native, 0o755))
	text, err := jsonl.Append(nil, &rollout.Rollout{ID: "x"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(c.native, "x.jsonl"), text, 0o600))
	have, err := c.finished()
	require.NoError(t, err)
	require.Contains(t, have, "x")
}
