package swerl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/sandbox"
	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// fake is a driver without processes: the text of a command says what it does.
type fake struct {
	mu         sync.Mutex
	containers map[string]sandbox.Container
	stuck      bool // containers cannot be destroyed
	most       int
	commands   []sandbox.Command
}

func (f *fake) Create(_ context.Context, name string, spec sandbox.Spec) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if spec.Image == "none" {
		return "", rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "no such image")
	}
	if f.containers == nil {
		f.containers = map[string]sandbox.Container{}
	}
	f.containers["id-"+name] = sandbox.Container{ID: "id-" + name, Name: name, Spec: spec, Created: time.Now()}
	f.most = max(f.most, len(f.containers))
	return "id-" + name, nil
}

func (f *fake) Exec(ctx context.Context, id string, c sandbox.Command) (sandbox.Result, error) {
	f.mu.Lock()
	_, ok := f.containers[id]
	f.commands = append(f.commands, c)
	f.mu.Unlock()
	switch {
	case !ok:
		return sandbox.Result{}, rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "%s is gone", id)
	case strings.HasPrefix(c.Text, "git rev-parse"):
		return sandbox.Result{Stdout: "c0ffee\nkept.ign\x00"}, nil
	case strings.HasPrefix(c.Text, "git add") && c.Dir == "latin":
		return sandbox.Result{Stdout: "+\xe9"}, nil
	case strings.HasPrefix(c.Text, "git add") && c.Dir == "plain":
		return sandbox.Result{ExitCode: 128, Stderr: "fatal: not a git repository\n"}, nil
	case strings.HasPrefix(c.Text, "git add"), strings.HasPrefix(c.Text, "C="): // the files in full
		return sandbox.Result{Stdout: patch, Stderr: "warning: of git\n"}, nil
	case strings.HasPrefix(c.Text, "git"):
		return sandbox.Result{}, nil
	case c.Text == "slow":
		select {
		case <-time.After(c.Timeout):
			return sandbox.Result{ExitCode: -1, Stdout: "half", End: sandbox.EndTimeout}, nil
		case <-ctx.Done():
			return sandbox.Result{}, rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "%w", ctx.Err())
		}
	case c.Text == "large":
		return sandbox.Result{ExitCode: 137, Stdout: "half", End: sandbox.EndOOM, Peak: 1 << 40, LeftOut: 7}, nil
	case c.Text == "bytes":
		return sandbox.Result{Stdout: "\xff"}, nil
	}
	return sandbox.Result{ExitCode: 1, Stdout: c.Text, Stderr: "|" + c.Env["A"] + "\n"}, nil
}

func (f *fake) Destroy(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stuck {
		return rollout.Errorf(rollout.KindSandbox, rollout.Where{}, "the daemon hangs")
	}
	delete(f.containers, id)
	return nil
}

func (f *fake) Containers(context.Context) (out []sandbox.Container, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		out = append(out, c)
	}
	return out, nil
}

func (f *fake) Images(context.Context) ([]string, error) { return []string{"a", "b"}, nil }

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.containers)
}

const patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"

func node(t *testing.T, f *fake, o swerl.ExecOptions) *httptest.Server {
	t.Helper()
	o.Driver = f
	s, err := swerl.NewExecServer(context.Background(), o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.Close(); cancel(); <-done })
	return h
}

// pool serves a pool until the test ends, or stop is called.
func pool(t *testing.T, o swerl.PoolOptions) (url string, stop func()) {
	t.Helper()
	o.HTTP = &http.Client{Transport: &http.Transport{}}
	p, err := swerl.NewPool(context.Background(), o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	h := httptest.NewServer(p)
	stop = sync.OnceFunc(func() {
		h.CloseClientConnections()
		h.Close()
		cancel()
		<-done
		o.HTTP.CloseIdleConnections()
	})
	t.Cleanup(stop)
	return h.URL, stop
}

func client(t *testing.T, o swerl.ClientOptions) sandbox.Provider {
	t.Helper()
	o.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	t.Cleanup(o.HTTP.CloseIdleConnections)
	if o.Pause == 0 {
		o.Pause = time.Millisecond
	}
	c, err := swerl.NewClient(o)
	require.NoError(t, err)
	return c
}

func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, strings.TrimSpace(string(text))
}

var changing = regexp.MustCompile(`id-swe-\w{12}|swe-lease-\w{16}|swe-\w{12}|http://127[\d.:]+|"created_at":[\d.e+]+`)

// TestWire checks the keys of every endpoint.
func TestWire(t *testing.T) {
	n := node(t, &fake{}, swerl.ExecOptions{})
	url, _ := pool(t, swerl.PoolOptions{Nodes: []string{n.URL + "/"}})
	_, made := ask(t, "POST", n.URL+"/container/create", `{"image": "i"}`)
	_, leased := ask(t, "POST", url+"/allocate", `{"image": "i", "instance_id": ""}`)
	id := regexp.MustCompile(`id-swe-\w+`).FindString(made)
	lease := regexp.MustCompile(`swe-lease-\w+`).FindString(leased)
	for _, c := range []struct{ server, path, body, want string }{
		{n.URL, "/healthz", "", `200 {"ok":true,"running_containers":"2"}`},
		{n.URL, "/images", "", `200 {"count":2,"images":["a","b"],"ok":true}`},
		{n.URL, "/container/create", `{"image": "i", "cwd": "/x", "timeout": 120}`, `200 {"container_id":"ID","name":"ID","ok":true}`},
		{n.URL, "/container/create", `{}`, `400 {"error":"image is required","ok":false}`},
		{n.URL, "/container/create", `{"image": "none"}`, `500 {"error":"no such image","ok":false}`},
		{n.URL, "/container/create", `[]`, `400 {"error":"the request is no JSON object of this protocol: json: cannot unmarshal array into Go value of type swerl.request","ok":false}`},
		{n.URL, "/container/exec", `{"container_id": "%", "command": "c", "env": {"A": "b"}}`, `200 {"ok":true,"output":"c|b\n","returncode":1}`},
		{n.URL, "/container/exec", `{"container_id": "%", "command": "bytes", "env": null, "timeout": "5"}`, `200 {"ok":true,"output":"\ufffd","returncode":0}`},
		{n.URL, "/container/exec", `{"container_id": "%", "command": "slow", "timeout": 0.01}`, `200 {"ok":true,"output":"Command timed out after 0.010s","returncode":-1}`},
		{n.URL, "/container/exec", `{"container_id": "%", "command": "large"}`, `200 {"ok":true,"output":"half\n[the command was killed: oom]\n","returncode":137,"verdict":"oom"}`},
		{n.URL, "/container/exec", `{"container_id": "%", "command": "large", "details": true}`, `200 {"end":"oom","left_out":7,"ok":true,"output":"half\n[the command was killed: oom]\n","peak_bytes":1099511627776,"returncode":137,"verdict":"oom"}`},
		{n.URL, "/container/exec", `{"container_id": "%"}`, `400 {"error":"container_id and command are required","ok":false}`},
		{n.URL, "/container/exec", `{"container_id": "x", "command": "c"}`, `404 {"error":"there is no container \"x\"","ok":false}`},
		{n.URL, "/container/diff", `{"container_id": "%", "cwd": "plain"}`, `200 {"error":"fatal: not a git repository\n","ok":true,"patch":"","returncode":128}`},
		{n.URL, "/container/diff", `{"container_id": "%"}`, fmt.Sprintf(`200 {"error":"","ok":true,"patch":%q,"returncode":0}`, patch)},
		{n.URL, "/container/diff", `{"container_id": "%", "cwd": "latin"}`, fmt.Sprintf(`200 {"error":"","ok":true,"patch":%q,"returncode":0}`, patch)},
		{n.URL, "/container/evaluate", `{"container_id": "%", "patch": "x", "eval_script": "s"}`, `200 {"error":"patch validation failed: expected unified git diff with diff --git headers","ok":true,"resolved":false}`},
		{n.URL, "/container/evaluate", fmt.Sprintf(`{"container_id": "%%", "patch": %q, "eval_script": "s"}`, patch), `200 {"ok":true,"output":"s|\n","resolved":false,"returncode":1}`},
		{n.URL, "/container/evaluate", fmt.Sprintf(`{"container_id": "%%", "patch": %q, "eval_script": "slow", "timeout": 0.001}`, patch), `200 {"error":"Evaluation timed out after 0.001s","ok":true,"resolved":false}`},
		{n.URL, "/container/destroy", `{"container_id": "%"}`, `200 {"ok":true}`},
		{n.URL, "/container/destroy", `{"container_id": "%"}`, `200 {"ok":true}`},
		{n.URL, "/container/destroy", `{}`, `400 {"error":"container_id is required","ok":false}`},
		{url, "/healthz", "", `200 {"ok":true}`},
		{url, "/status", "", `200 {"ok":true,"pool":{"nodes":[{"active_containers":1,"healthy":true,"max_containers":15,"url":"ID"}],"total_leases":1}}`},
		{url, "/allocate", `{"image": "i", "instance_id": "x"}`, `200 {"container_id":"ID","lease_id":"ID","node_url":"ID","ok":true}`},
		{url, "/allocate", `{}`, `400 {"error":"image is required","ok":false}`},
		{url, "/allocate", `{"image": "none"}`, `500 {"error":"ID/container/create: no such image","ok":false}`},
		{url, "/heartbeat", `{"lease_id": "%"}`, `200 {"ok":true}`},
		{url, "/heartbeat", `{}`, `400 {"error":"lease_id required","ok":false}`},
		{url, "/heartbeat", `{"lease_id": "x"}`, `404 {"error":"Unknown lease_id: x: it was closed, or expired after 10m0s without a heartbeat","ok":false}`},
		{url, "/exec", `{"lease_id": "%", "command": "c", "cwd": "/testbed", "timeout": 180, "env": {}}`, `200 {"ok":true,"output":"c|\n","returncode":1}`},
		{url, "/exec", `{"lease_id": "%"}`, `400 {"error":"lease_id and command required","ok":false}`},
		{url, "/diff", `{"lease_id": "%", "cwd": "/testbed"}`, fmt.Sprintf(`200 {"error":"","ok":true,"patch":%q,"returncode":0}`, patch)},
		{url, "/evaluate", fmt.Sprintf(`{"lease_id": "%%", "patch": %q, "eval_script": "s", "cwd": "/testbed", "timeout": 3600}`, patch), `200 {"ok":true,"output":"s|\n","resolved":false,"returncode":1}`},
		{url, "/close", `{"lease_id": "%"}`, `200 {"ok":true}`},
		{url, "/close", `{"lease_id": "%"}`, `200 {"ok":true}`},
		{url, "/close", `{}`, `400 {"error":"lease_id required","ok":false}`},
		{n.URL, "/status", "", `200 {"active_containers":2,"containers":{"ID":{"created_at":0,"image":"i","name":"ID"},"ID":{"created_at":0,"image":"i","instance_id":"x","lease_id":"ID","name":"ID","pool":"pool"}},"ok":true}`},
	} {
		method, subject := "POST", id
		if c.body == "" {
			method = "GET"
		}
		if c.server == url {
			subject = lease
		}
		status, text := ask(t, method, c.server+c.path, strings.Replace(c.body, "%", subject, 1))
		got := fmt.Sprint(status, " ", changing.ReplaceAllStringFunc(text, func(s string) string {
			if strings.HasPrefix(s, `"created_at`) {
				return `"created_at":0`
			}
			return "ID"
		}))
		if c.path == "/status" && c.server == n.URL { // containers are in the order of random names
			require.Equal(t, len(c.want), len(got), got)
			require.Contains(t, got, `"instance_id":"x","lease_id":"ID","name":"ID","pool":"pool"`)
			continue
		}
		require.Equal(t, c.want, got, c.path+" "+c.body)
	}
}

func TestLeasesExpire(t *testing.T) {
	f := &fake{}
	n := node(t, f, swerl.ExecOptions{})
	url, _ := pool(t, swerl.PoolOptions{Nodes: []string{n.URL}, TTL: 2 * time.Second})
	ctx := context.Background()
	lost, err := client(t, swerl.ClientOptions{URL: url, Heartbeat: -1}).Create(ctx, sandbox.Spec{Image: "i"})
	require.NoError(t, err)
	kept, err := client(t, swerl.ClientOptions{URL: url, Heartbeat: 20 * time.Millisecond}).Create(ctx, sandbox.Spec{Image: "i"})
	require.NoError(t, err)
	r, err := lost.Exec(ctx, sandbox.Command{Text: "slow", Timeout: 2500 * time.Millisecond}) // a request longer than the TTL keeps the lease alive
	require.NoError(t, err)
	require.Equal(t, sandbox.EndTimeout, r.End)
	require.Equal(t, 2, f.count())
	require.Eventually(t, func() bool { return f.count() == 1 }, 20*time.Second, 5*time.Millisecond)
	_, err = lost.Exec(ctx, sandbox.Command{Text: "c"})
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.Contains(t, err.Error(), "expired after 2s")
	_, err = kept.Exec(ctx, sandbox.Command{Text: "c"})
	require.NoError(t, err)
	require.NoError(t, lost.Close(ctx))
	require.NoError(t, kept.Close(ctx))
	require.NoError(t, kept.Close(ctx))
	require.Zero(t, f.count())
}

func TestLostNodeIsInfrastructure(t *testing.T) {
	bad := node(t, &fake{}, swerl.ExecOptions{})
	url, _ := pool(t, swerl.PoolOptions{Nodes: []string{bad.URL}, Health: 20 * time.Millisecond})
	c := client(t, swerl.ClientOptions{URL: url, Retries: 2, Wait: time.Nanosecond})
	ctx := context.Background()
	box, err := c.Create(ctx, sandbox.Spec{Image: "i"})
	require.NoError(t, err)
	bad.CloseClientConnections()
	bad.Close()
	_, err = box.Exec(ctx, sandbox.Command{Text: "c"})
	require.ErrorIs(t, err, rollout.KindSandbox)
	_, err = box.Diff(ctx, "")
	require.ErrorIs(t, err, rollout.KindSandbox)
	_, err = box.Evaluate(ctx, sandbox.Evaluation{Patch: patch, Script: "s"})
	require.ErrorIs(t, err, rollout.KindSandbox, "no verdict of a lost node")
	_, err = c.Create(ctx, sandbox.Spec{Image: "i"})
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.Contains(t, err.Error(), "full or unhealthy")
	require.NoError(t, box.Close(ctx), "the pool goes on trying")
	_, text := ask(t, "GET", url+"/status", "")
	require.Contains(t, text, `"total_leases":1`)
}

func TestANodeThatIsDownIsPassedOver(t *testing.T) {
	down := node(t, &fake{}, swerl.ExecOptions{})
	f := &fake{}
	up := node(t, f, swerl.ExecOptions{})
	url, _ := pool(t, swerl.PoolOptions{Nodes: []string{down.URL, up.URL}})
	down.Close()
	for range 3 {
		status, text := ask(t, "POST", url+"/allocate", `{"image": "i"}`)
		require.Equal(t, 200, status, text)
	}
	require.Equal(t, 3, f.count())
}

func TestContainersThatStayAreNotForgotten(t *testing.T) {
	f := &fake{stuck: true}
	n := node(t, f, swerl.ExecOptions{})
	url, _ := pool(t, swerl.PoolOptions{Nodes: []string{n.URL}, PerNode: 1, TTL: 100 * time.Millisecond})
	_, text := ask(t, "POST", url+"/allocate", `{"image": "i"}`)
	lease := regexp.MustCompile(`swe-lease-\w+`).FindString(text)
	_, text = ask(t, "POST", url+"/close", `{"lease_id": "`+lease+`"}`)
	require.Equal(t, `{"ok":true}`, text)
	status, text := ask(t, "POST", url+"/allocate", `{"image": "i"}`)
	require.Equal(t, 503, status, text)
	status, _ = ask(t, "POST", url+"/exec", `{"lease_id": "`+lease+`", "command": "c"}`)
	require.Equal(t, 404, status)
	f.mu.Lock()
	f.stuck = false
	f.mu.Unlock()
	require.Eventually(t, func() bool { // the pool learns of it after the node
		status, _ = ask(t, "POST", url+"/allocate", `{"image": "i"}`)
		return status == 200
	}, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, 1, f.count())
}

func TestAPoolThatWasKilledHasItsLeases(t *testing.T) {
	f := &fake{}
	n := node(t, f, swerl.ExecOptions{})
	o := swerl.PoolOptions{Nodes: []string{n.URL}, PerNode: 3, TTL: time.Minute, Name: "one"}
	url, stop := pool(t, o)
	_, text := ask(t, "POST", url+"/allocate", `{"image": "i"}`)
	lease := regexp.MustCompile(`swe-lease-\w+`).FindString(text)
	ask(t, "POST", n.URL+"/container/create", `{"image": "of nobody"}`)
	stop()

	o.Name = "two"
	url, stop = pool(t, o)
	status, _ := ask(t, "POST", url+"/heartbeat", `{"lease_id": "`+lease+`"}`)
	require.Equal(t, 404, status, "it is not this pool's")
	stop()
	o.Name, o.TTL = "one", time.Second
	url, _ = pool(t, o)
	status, text = ask(t, "POST", url+"/exec", `{"lease_id": "`+lease+`", "command": "c"}`)
	require.Equal(t, 200, status, text)
	require.Eventually(t, func() bool { return f.count() == 1 }, 20*time.Second, 5*time.Millisecond, "and it expires as any other")
}

func TestAPoolThatEndsDestroysItsContainers(t *testing.T) {
	f := &fake{}
	n := node(t, f, swerl.ExecOptions{})
	p, err := swerl.NewPool(context.Background(), swerl.PoolOptions{Nodes: []string{n.URL}})
	require.NoError(t, err)
	h := httptest.NewServer(p)
	defer h.Close()
	for range 3 {
		ask(t, "POST", h.URL+"/allocate", `{"image": "i"}`)
	}
	require.Equal(t, 3, f.count())
	require.NoError(t, p.Close(context.Background()))
	require.Zero(t, f.count())
	status, _ := ask(t, "POST", h.URL+"/allocate", `{"image": "i"}`)
	require.Equal(t, 503, status)
}

func TestIdleContainersOfANode(t *testing.T) {
	f := &fake{}
	n := node(t, f, swerl.ExecOptions{Idle: time.Second})
	c := client(t, swerl.ClientOptions{URL: n.URL, Direct: true})
	box, err := c.Create(context.Background(), sandbox.Spec{Image: "i"})
	require.NoError(t, err)
	r, err := box.Exec(context.Background(), sandbox.Command{Text: "large"})
	require.NoError(t, err)
	require.Equal(t, sandbox.EndOOM, r.End)
	require.EqualValues(t, 1<<40, r.Peak)
	require.Eventually(t, func() bool { return f.count() == 0 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, box.Close(context.Background()))
}

func TestManyAttemptsLeakNothing(t *testing.T) {
	nodes, urls := []*fake{{}, {}, {}}, []string{}
	for _, f := range nodes {
		urls = append(urls, node(t, f, swerl.ExecOptions{}).URL)
	}
	url, _ := pool(t, swerl.PoolOptions{Nodes: urls, PerNode: 10})
	before := runtime.NumGoroutine()
	c := client(t, swerl.ClientOptions{URL: url, Pause: 20 * time.Millisecond})
	var g errgroup.Group
	var held, most atomic.Int64
	for i := range 128 {
		g.Go(func() (err error) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			box, err := c.Create(ctx, sandbox.Spec{Image: "i", Instance: fmt.Sprint(i)})
			if err != nil {
				return err
			}
			most.Store(max(most.Load(), held.Add(1)))
			defer func() { held.Add(-1); err = errors.Join(err, box.Close(context.Background())) }()
			if i%7 == 0 { // a client that stops early
				ctx, cancel = context.WithTimeout(ctx, 5*time.Millisecond)
				defer cancel()
				_, err := box.Exec(ctx, sandbox.Command{Text: "slow"})
				if !errors.Is(err, rollout.KindSandbox) {
					return fmt.Errorf("%d: %w", i, err)
				}
				return nil
			}
			if r, err := box.Exec(ctx, sandbox.Command{Text: "c"}); err != nil || r.ExitCode != 1 {
				return fmt.Errorf("%v %w", r, err)
			}
			if p, err := box.Diff(ctx, ""); err != nil || p != patch {
				return fmt.Errorf("%v %w", p, err)
			}
			v, err := box.Evaluate(ctx, sandbox.Evaluation{Patch: patch, Script: "s"})
			if err == nil && v.ExitCode != 1 {
				err = fmt.Errorf("%v", v)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	for _, f := range nodes {
		require.Zero(t, f.count())
		require.LessOrEqual(t, f.most, 10)
		require.Positive(t, f.most)
	}
	require.LessOrEqual(t, most.Load(), int64(30))
	_, text := ask(t, "GET", url+"/status", "")
	require.Equal(t, 3, strings.Count(text, `"active_containers":0`), text)
	// Only idle connections remain, both ends of which are on this machine.
	require.Eventually(t, func() bool {
		stacks := make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return !bytes.Contains(stacks, []byte("swerl.(*remote)")) && !bytes.Contains(stacks, []byte("swerl.(*pool).ask"))
	}, 20*time.Second, 10*time.Millisecond, "%d goroutines before", before)
}

// TestRetries checks which requests are retried.
func TestRetries(t *testing.T) {
	var calls atomic.Int64
	var behaviour atomic.Pointer[func(http.ResponseWriter, int64)]
	behave := func(f func(http.ResponseWriter, int64)) { behaviour.Store(&f) }
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		n := calls.Add(1)
		if r.URL.Path == "/allocate" {
			fmt.Fprint(w, `{"ok": true, "lease_id": "l", "container_id": "c", "node_url": "u"}`)
			return
		}
		(*behaviour.Load())(w, n)
	}))
	defer h.Close()
	c := client(t, swerl.ClientOptions{URL: h.URL, Heartbeat: -1})
	ctx := context.Background()
	box, err := c.Create(ctx, sandbox.Spec{Image: "i"})
	require.NoError(t, err)
	count := func(f func() error) (int64, error) { calls.Store(0); err := f(); return calls.Load(), err }
	exec := func() error { _, err := box.Exec(ctx, sandbox.Command{Text: "c"}); return err }
	evaluate := func() error { _, err := box.Evaluate(ctx, sandbox.Evaluation{Patch: patch}); return err }

	behave(func(w http.ResponseWriter, n int64) { // the answer of the reference server
		w.WriteHeader(500)
		fmt.Fprint(w, `{"ok": false, "error": "e"}`)
	})
	n, err := count(exec)
	require.EqualValues(t, 10, n)
	require.ErrorIs(t, err, rollout.KindSandbox)
	n, _ = count(evaluate)
	require.EqualValues(t, 3, n)
	behave(func(w http.ResponseWriter, n int64) {
		if n < 10 {
			w.WriteHeader(500)
		}
		fmt.Fprint(w, `{"ok": true, "output": "x", "returncode": 0}`)
	})
	n, err = count(exec)
	require.NoError(t, err)
	require.EqualValues(t, 10, n)
	behave(func(w http.ResponseWriter, n int64) { panic(http.ErrAbortHandler) })
	n, err = count(exec)
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.EqualValues(t, 1, n, "a command may have run: it is not sent again")
	n, _ = count(evaluate)
	require.EqualValues(t, 3, n)
	behave(func(w http.ResponseWriter, n int64) {
		w.WriteHeader(400)
		fmt.Fprint(w, `{"ok": false, "error": "bad"}`)
	})
	n, err = count(exec)
	require.ErrorIs(t, err, rollout.KindInput)
	require.EqualValues(t, 1, n)
	behave(func(w http.ResponseWriter, n int64) { fmt.Fprint(w, `<html>`) })
	_, err = count(exec)
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.Contains(t, err.Error(), "Direct")

	gone := httptest.NewServer(nil)
	gone.Close()
	begin := time.Now()
	_, err = client(t, swerl.ClientOptions{URL: gone.URL, Pause: time.Millisecond}).Create(ctx, sandbox.Spec{Image: "i"})
	require.ErrorIs(t, err, rollout.KindSandbox)
	require.Less(t, time.Since(begin), 20*time.Second)
}

func TestRequestsHaveTheKeysOfTheReference(t *testing.T) {
	var got []string
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		json.NewDecoder(r.Body).Decode(&body)
		text, _ := json.Marshal(body)
		got = append(got, r.URL.Path+" "+string(text))
		fmt.Fprint(w, `{"ok": true, "lease_id": "l", "container_id": "c", "name": "n", "returncode": -1, "output": "Command timed out after 7s", "patch": "p"}`)
	}))
	defer h.Close()
	ctx := context.Background()
	for _, direct := range []bool{false, true} {
		box, err := client(t, swerl.ClientOptions{URL: h.URL, Direct: direct}).Create(ctx, sandbox.Spec{Image: "i", Instance: "x"})
		require.NoError(t, err)
		r, err := box.Exec(ctx, sandbox.Command{Text: "c", Timeout: 6500 * time.Millisecond})
		require.NoError(t, err)
		require.Equal(t, sandbox.EndTimeout, r.End, "as the reference's server says it")
		_, err = box.Diff(ctx, "")
		require.Error(t, err, "git failed")
		_, err = box.Evaluate(ctx, sandbox.Evaluation{Patch: "p", Script: "s"})
		require.NoError(t, err)
		require.NoError(t, box.Close(ctx))
	}
	require.Equal(t, []string{
		`/allocate {"image":"i","instance_id":"x"}`,
		`/exec {"command":"c","cwd":"/testbed","details":true,"lease_id":"l","timeout":7}`,
		`/diff {"cwd":"/testbed","lease_id":"l"}`,
		`/evaluate {"cwd":"/testbed","details":true,"eval_script":"s","lease_id":"l","patch":"p","timeout":3600}`,
		`/close {"lease_id":"l"}`,
		`/container/create {"cwd":"/testbed","image":"i"}`,
		`/container/exec {"command":"c","container_id":"c","cwd":"/testbed","details":true,"timeout":7}`,
		`/container/diff {"container_id":"c","cwd":"/testbed"}`,
		`/container/evaluate {"container_id":"c","cwd":"/testbed","details":true,"eval_script":"s","patch":"p","timeout":3600}`,
		`/container/destroy {"container_id":"c"}`,
	}, got)
}

func TestEnviron(t *testing.T) {
	o, err := swerl.Environ(func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, swerl.ClientOptions{URL: "http://localhost:18090"}, o)
	o, err = swerl.Environ(func(name string) string {
		return map[string]string{"SWE_ENV_SERVER_HOST": "h", "SWE_ENV_SERVER_PORT": "1", "SWE_ENV_HTTP_MAX_RETRIES": "4", "SWE_EVALUATE_MAX_RETRIES": "x"}[name]
	})
	require.ErrorIs(t, err, rollout.KindInput)
	require.Equal(t, "http://h:1", o.URL)
	require.Equal(t, 4, o.Retries)
}
