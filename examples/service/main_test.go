package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
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

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

const modelFolder = "../../tokenize/embedded"

// TestMain runs the service itself if a test starts it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("SERVICE_PROCESS") != "" {
		limitFiles(os.Getenv("SERVICE_ROOM"))
		main()
		return
	}
	if os.Getenv("TRAINER_PROCESS") != "" {
		train(os.Args[1], os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func fakeEngine(t testing.TB, o fakeengine.Options) (*fakeengine.Server, string) {
	t.Helper()
	model, err := embedded.Model()
	require.NoError(t, err)
	o.Model = model
	e := fakeengine.New(o)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return e, server.URL
}

// start runs the service. stop drains and ends it.
func start(t *testing.T, dir, engine string, args ...string) (url string, stop func()) {
	t.Helper()
	return startWith(t, io.Discard, dir, engine, args...)
}

// startWith is start with a writer for the log.
func startWith(t *testing.T, log io.Writer, dir, engine string, args ...string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan error, 1)
	args = append([]string{"--model", modelFolder, "--engine", engine, "--listen", "127.0.0.1:0", "--journal", filepath.Join(dir, "journal"), "--out", filepath.Join(dir, "out")}, args...)
	go func() {
		err := run(ctx, args, w, log)
		w.CloseWithError(fmt.Errorf("it ended: %v", err))
		done <- err
	}()
	var addr string
	_, err := fmt.Fscanf(r, "listening on %s\n", &addr)
	require.NoError(t, err)
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return "http://" + addr, stop
}

func ask(t testing.TB, method, url, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// chat makes one call and returns the content of the reply.
func chat(t testing.TB, base string, messages []map[string]string, header ...string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	require.NoError(t, err)
	status, text := ask(t, "POST", base+"/chat/completions", string(body), header...)
	require.Equal(t, 200, status, text)
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &reply))
	require.NotContains(t, text, "token_ids", "what the client did not ask for")
	return reply.Choices[0].Message.Content
}

// play runs an agent of two turns.
func play(t testing.TB, base, task string, header ...string) {
	t.Helper()
	messages := []map[string]string{{"role": "user", "content": task}}
	reply := chat(t, base, messages, header...)
	messages = append(messages, map[string]string{"role": "assistant", "content": reply}, map[string]string{"role": "user", "content": "go on"})
	chat(t, base, messages, header...)
}

// TestContract exercises the whole external interface of the service.
func TestContract(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	_, engine := fakeEngine(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "ls -la"}, {Content: "done"}}})
	file := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"group": 2, "max-turns": 3, "deadline": "1h"}`), 0o600))
	url, stop := start(t, dir, engine, "--config", file)

	play(t, url+"/rollouts/a/v1", "fix it")
	play(t, url+"/v1", "fix it", "X-Session-Id", "b")
	status, text := ask(t, "POST", url+"/rollouts/b/v1/messages", `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`)
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"type":"message"`)
	status, text = ask(t, "POST", url+"/rollouts/b/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"one more"}]}`)
	require.Equal(t, 400, status, text)
	require.Contains(t, text, "3 turns")

	status, text = ask(t, "GET", url+"/rollouts/a", "")
	require.Equal(t, 200, status)
	r, err := jsonl.Parse([]byte(strings.TrimSpace(text)), jsonl.Options{})
	require.NoError(t, err)
	require.Len(t, r.Turns, 2)
	status, _ = ask(t, "GET", url+"/rollouts/nobody", "")
	require.Equal(t, 404, status)
	status, text = ask(t, "GET", url+"/rollouts/a/calls", "")
	require.Equal(t, 200, status)
	require.Equal(t, 2, strings.Count(text, `"state":"ok"`))
	require.Contains(t, text, `"join":"extends"`)

	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/version", `{"version": 7}`, 200},
		{"/pause", `{"policy": "reject"}`, 200},
		{"/rollouts/a/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"paused"}]}`, 429},
		{"/resume", ``, 200},
		{"/pause", `{"policy": "no"}`, 400},
		{"/rollouts/nobody/end", `{"group":"task-7","resolved":true}`, 404},
		{"/rollouts/a/end", `{"group":"task-7"}`, 400},
		{"/rollouts/a/end", `{"group":"task-7","reslved":true}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"who"}]}`, 401},
	} {
		status, text = ask(t, "POST", url+c.path, c.body)
		require.Equal(t, c.status, status, c.path+c.body+": "+text)
	}

	status, _ = ask(t, "GET", url+"/batches?after=0&wait=10ms", "")
	require.Equal(t, 204, status)
	status, text = ask(t, "POST", url+"/rollouts/a/end", `{"group":"task-7","resolved":true,"metadata":{"k":1}}`)
	require.Equal(t, 200, status, text)
	require.JSONEq(t, `{"group":"task-7","waiting":1,"batch":null}`, text)
	status, last := ask(t, "POST", url+"/rollouts/b/end", `{"group":"task-7","resolved":false}`)
	require.Equal(t, 200, status, last)
	status, text = ask(t, "POST", url+"/rollouts/b/end", `{"group":"task-7","resolved":false}`)
	require.Equal(t, 200, status)
	require.Equal(t, last, text)
	status, _ = ask(t, "POST", url+"/rollouts/b/end", `{"group":"task-7","resolved":true}`)
	require.Equal(t, 409, status)
	status, _ = ask(t, "POST", url+"/rollouts/a/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"late"}]}`)
	require.Equal(t, 409, status, "a rollout that has ended takes no calls")

	var answer struct {
		Batch struct {
			Path    string
			Rows    int
			Trained int64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(last), &answer))
	rows, _, err := export.ReadAll(answer.Batch.Path)
	require.NoError(t, err)
	require.Len(t, rows, answer.Batch.Rows)
	require.Equal(t, rollout.StatusCompleted, rows[0].Status)
	require.Equal(t, rollout.StatusTruncated, rows[len(rows)-1].Status, "b was refused a turn")

	status, text = ask(t, "GET", url+"/batches?after=0&wait=5s", "")
	require.Equal(t, 200, status)
	arrow, err := export.NewReader(bytes.NewReader([]byte(text)), int64(len(text)))
	require.NoError(t, err)
	require.Equal(t, 1, arrow.Info().GroupSeq)
	for _, want := range rows {
		got, err := arrow.Read()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	status, text = ask(t, "POST", url+"/batches/ack", `{"seq": 1}`)
	require.Equal(t, 200, status, text)

	for _, path := range []string{"/healthz", "/metrics", "/debug/sessions"} {
		status, text = ask(t, "GET", url+path, "")
		require.Equal(t, 200, status)
		require.NotEmpty(t, text)
	}
	waiting := make(chan int)
	go func() {
		r, err := http.Get(url + "/batches?after=1&wait=5m")
		if err != nil {
			waiting <- 0
			return
		}
		r.Body.Close()
		waiting <- r.StatusCode
	}()
	time.Sleep(50 * time.Millisecond)
	stop()
	require.Contains(t, []int{204, 0}, <-waiting, "a trainer that waits does not hold up the end")
	http.DefaultClient.CloseIdleConnections()
	for range 300 {
		if runtime.NumGoroutine() <= before+4 { // the engine's listener
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+4)
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The service logs with slog what it serves, each batch, each group that gives none, and
// its end. It logs nothing of a client's key.
func TestLog(t *testing.T) {
	_, engine := fakeEngine(t, fakeengine.Options{Seed: 1})
	var log lines
	url, stop := startWith(t, &log, t.TempDir(), engine, "--group", "2")
	play(t, url+"/rollouts/a/v1", "task", "Authorization", "Bearer client-secret")
	for id, ending := range map[string]string{"a": `"g","resolved":true`, "b": `"g","failure":"sandbox lost"`, "lost": `"h","failure":"sandbox lost"`, "too": `"h","failure":"sandbox lost"`} {
		status, text := ask(t, "POST", url+"/rollouts/"+id+"/end", `{"group":`+ending+`}`)
		require.Equal(t, 200, status, text)
	}
	stop()
	for _, want := range []string{"msg=ready engine=" + engine, `level=INFO msg=batch group=g rollouts=2 left_out="map[excluded: infrastructure failure: sandbox lost:1]" rows=`, `msg=draining`, `level=ERROR msg=group group=h step=0 error=`} {
		require.Eventually(t, func() bool { return strings.Contains(log.String(), want) }, time.Minute, time.Millisecond, want)
	}
	require.NotContains(t, log.String(), "secret")
}

// The token of a session is what the README says of it, and its id alone gives no access.
func TestTokenOnly(t *testing.T) {
	_, engine := fakeEngine(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "ok"}}})
	dir := t.TempDir()
	url, _ := start(t, dir, engine, "--token-only")
	const body, id = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "task 7/é"
	status, _ := ask(t, "POST", url+"/rollouts/a/v1/chat/completions", body)
	require.Equal(t, 401, status)
	secret, err := os.ReadFile(filepath.Join(dir, "journal", ".secret"))
	require.NoError(t, err)
	sum := hmac.New(sha256.New, secret)
	sum.Write([]byte(id))
	b := base64.RawURLEncoding.EncodeToString
	token := "tp-" + b([]byte(id)) + "." + b(sum.Sum(nil)) // as the README says
	status, text := ask(t, "POST", url+"/v1/chat/completions", body, "Authorization", "Bearer "+token)
	require.Equal(t, 200, status, text)
}

func TestFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"model":"m","engine":"http://e","group":4,"max-age":2,"drain":"5s"}`), 0o600))
	c, err := parse([]string{"--config", file, "--group", "6"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 6, c.Groups.Size)
	require.Equal(t, int32(2), *c.Groups.MaxAge)
	require.Equal(t, 5*time.Second, c.drain)
	require.NoError(t, os.WriteFile(file, []byte(`{"modle":"m"}`), 0o600))
	for _, args := range [][]string{{}, {"--model", "m"}, {"--config", file}, {"--config", dir}, {"--model", "m", "--engine", "e", "x"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, args)
	}
}

func TestAnAgeBeyondAllVersionsLeavesOutNothing(t *testing.T) {
	c, err := parse([]string{"--model", "m", "--engine", "http://e", "--max-age", "4294967296"}, io.Discard)
	require.NoError(t, err)
	require.NotNil(t, c.Groups.MaxAge)
	require.Equal(t, int32(math.MaxInt32), *c.Groups.MaxAge)
}
