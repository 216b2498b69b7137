//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
)

const childArgs = "TURNPACK_TEST_SWERL"

// TestMain runs the command itself in the processes that TestKilled starts and kills.
func TestMain(m *testing.M) {
	if args := os.Getenv(childArgs); args != "" {
		os.Args = append([]string{"swerl"}, strings.Split(args, "\n")...)
		main()
		return
	}
	os.Exit(m.Run())
}

// child is the command running as a separate process.
type child struct {
	*exec.Cmd
	out *bufio.Reader
}

func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childArgs+"="+strings.Join(args, "\n"), "SWE_SAVE_TRAJ_DIR=", "GOMAXPROCS=2")
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd, bufio.NewReader(pipe)}
	t.Cleanup(func() { c.kill() })
	if strings.HasPrefix(args[0], "serve") {
		line, err := c.out.ReadString('\n')
		require.NoError(t, err, "%v", args)
		require.Contains(t, line, "listening on ")
	}
	return c
}

// kill ends the process like kill -9.
func (c *child) kill() {
	_ = c.Process.Signal(syscall.SIGKILL) // the process may have ended already
	_ = c.Wait()
}

// wait waits for the process to end and returns its output.
func (c *child) wait() (string, error) {
	var said strings.Builder
	_, err := c.out.WriteTo(&said)
	if e := c.Wait(); e != nil {
		err = e
	}
	return said.String(), err
}

func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// Pool, node and client are killed while attempts run. Finished attempts stay, running
// ones continue after a restart of pool or node, and those of a killed client are
// repeated. Then each other command runs. All are processes with the flags of the README.
func TestKilled(t *testing.T) {
	for _, program := range []string{"git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: sandboxes need %s on the PATH: install it to run this test", program)
		}
	}
	dir := t.TempDir()
	repo := filepath.Join(dir, "images", "demo")
	require.NoError(t, os.MkdirAll(repo, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(repo, "a"), []byte("bad\n"), 0o644))
	for _, args := range [][]string{{"init", "-q", "--template="}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "begin"}} {
		text, err := exec.Command("git", append([]string{"-C", repo}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	data := filepath.Join(dir, "train.jsonl")
	require.NoError(t, os.WriteFile(data, []byte(`{"text":"mend a","metadata":{"data_source":"swe-gym","instance":{"instance_id":"demo__a-1","problem_statement":"mend a","image_name":"demo","eval_script":"grep good a"}}}`+"\n"), 0o644))
	nodeAt, poolAt, out := free(t), free(t), filepath.Join(dir, "out")
	node := startChild(t, "serve-exec", "--listen", nodeAt, "--driver", "local", "--root", filepath.Join(dir, "images"))
	startPool := func() *child {
		return startChild(t, "serve-pool", "--listen", poolAt, "--nodes", "http://"+nodeAt, "--lease-ttl", "3s", "--health", "200ms")
	}
	pool := startPool()

	commands := []string{"echo good > a", "true", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached"}
	var mu sync.Mutex
	var openings int
	var client *child
	killed := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"policy"}]}`)
			return
		}
		var q struct{ Messages []struct{ Role string } }
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		step := 0
		for _, m := range q.Messages {
			if m.Role == "assistant" {
				step++
			}
		}
		if step == 0 {
			openings++
		}
		if step == 1 { // the sandbox has the changes of the first command
			switch openings {
			case 1:
				pool.kill()
				pool = startPool()
			case 2:
				node.kill()
				node = startChild(t, "serve-exec", "--listen", nodeAt, "--driver", "local", "--root", filepath.Join(dir, "images"))
			case 3:
				client.kill()
				close(killed)
				return
			}
		}
		command := commands[step]
		if openings == 2 && step == 0 {
			command = "echo worse > a"
		}
		json.NewEncoder(w).Encode(map[string]any{"id": fmt.Sprint("r", openings, step), "choices": []any{map[string]any{"index": 0, "finish_reason": "stop",
			"message": map[string]any{"role": "assistant", "content": "THOUGHT: go on\n\n```bash\n" + command + "\n```"}}}})
	}))
	defer api.Close()
	run := func() *child {
		return startChild(t, "rollout", "--data", data, "--pool", "http://"+poolAt, "--api-base", api.URL, "--model", "../../tokenize/embedded", "--n", "3", "--max-concurrent", "1",
			"--step-limit", "20", "--max-context", "16384", "--max-new-tokens", "4096", "--recipe", "swe-rl@0d034dd", "--out", out)
	}
	mu.Lock()
	client = run()
	mu.Unlock()
	select {
	case <-killed:
	case <-time.After(2 * time.Minute):
		t.Fatal("the third attempt did not begin")
	}
	native, err := filepath.Glob(filepath.Join(out, "rollouts", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, native, 2, "two attempts had finished")
	require.NoFileExists(t, filepath.Join(out, "batches", "data", "batch_000001.parquet"))
	said, err := run().wait()
	require.NoError(t, err, said)
	require.Contains(t, said, "1 attempts were cut by the end of another run")
	require.Contains(t, said, "3 attempts at 1 tasks, 2 are there")
	require.Contains(t, said, "resolved 2, unresolved 1", "nothing was lost, nothing counts against the policy")
	mu.Lock()
	made := openings
	mu.Unlock()
	require.Equal(t, 4, made, "only what was cut is made again")

	native, err = filepath.Glob(filepath.Join(out, "rollouts", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, native, 3)
	for _, path := range native {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		r, err := jsonl.Parse(text, jsonl.Options{})
		require.NoError(t, err)
		require.Nil(t, r.Failure, path)
		require.Equal(t, rollout.StatusCompleted, r.Status)
	}
	for _, name := range []string{"rows.parquet", "batches/data/batch_000001.parquet"} {
		rows, _, err := export.ReadAll(filepath.Join(out, name))
		require.NoError(t, err)
		require.Len(t, rows, 9, "%s: a row for each turn of the three", name)
	}
	// The other commands, called as a user would.
	results := filepath.Join(dir, "results")
	said, err = startChild(t, "eval", "--data", data, "--pool", "http://"+poolAt, "--api-base", api.URL, "--model", "policy", "--output-dir", results,
		"--max-concurrent", "2", "--max-instances", "1", "--step-limit", "20", "--max-tokens", "4096", "--attempts", "2").wait()
	require.NoError(t, err, said)
	text, err := os.ReadFile(filepath.Join(results, "results.jsonl"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var keys map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &keys))
		for _, k := range []string{"instance_id", "resolved", "exit_status", "patch_source", "n_steps", "error", "elapsed", "run_dir"} {
			require.Contains(t, keys, k)
		}
		require.Equal(t, true, keys["resolved"], line)
	}
	predictions, err := os.ReadFile(filepath.Join(results, "predictions.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(predictions), "\n"), "one for each instance, of its first attempt")
	var summary map[string]any
	text, err = os.ReadFile(filepath.Join(results, "summary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &summary))
	for _, k := range []string{"model", "data", "total", "resolved", "resolve_rate", "errors", "no_patch", "avg_steps", "avg_elapsed_s", "timestamp", "args"} {
		require.Contains(t, summary, k)
	}
	said, err = startChild(t, "data", "swe", "--in", data, "--out", filepath.Join(dir, "swe")).wait()
	require.NoError(t, err, said)
	require.FileExists(t, filepath.Join(dir, "swe", "train.jsonl"))
	said, err = startChild(t, "data", "pivot", "--in", filepath.Join(out, "runs"), "--out", filepath.Join(dir, "pivot")).wait()
	require.NoError(t, err, said)
	require.Contains(t, said, "3 trajectories, 0 kept", "of one changed line")
	require.FileExists(t, filepath.Join(dir, "pivot", "manifest.json"))

	require.Eventually(t, func() bool {
		left, err := os.ReadDir(filepath.Join(dir, "images", ".containers"))
		return err == nil && len(left) == 0
	}, 20*time.Second, 50*time.Millisecond, "the lease of the killed client ends")
}
