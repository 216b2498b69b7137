//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
)

// smallDisk is the file size in bytes beyond which writes fail while the disk is full.
const smallDisk = 128 << 10

// limitFiles simulates a full disk: until the file room exists, no file of the process
// grows beyond smallDisk.
func limitFiles(room string) {
	if room == "" {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		panic(err)
	}
	all := l.Cur
	l.Cur = smallDisk
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		panic(err)
	}
	go func() {
		for {
			if _, err := os.Stat(room); err == nil {
				l.Cur = all
				if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
					panic(err)
				}
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
}

// While the disk of the service is full, new calls and sessions get status 503 in the
// format of their API, and recorded data can still be read. When there is room again,
// calls succeed, and a batch, even after a kill, has each reply that a client received.
func TestFullDisk(t *testing.T) {
	_, engine := fakeEngine(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "ok"}}})
	dir := t.TempDir()
	room := filepath.Join(dir, "room")
	t.Setenv("SERVICE_ROOM", room)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	service := &process{t: t, env: "SERVICE_PROCESS", args: []string{"--model", modelFolder, "--engine", engine, "--listen", addr,
		"--journal", filepath.Join(dir, "journal"), "--out", filepath.Join(dir, "out"), "--group", "1"}}
	service.start()
	defer func() { service.kill() }()
	url := "http://" + addr
	up := func() {
		t.Helper()
		for range 1000 {
			if r, err := http.Get(url + "/metrics"); err == nil {
				r.Body.Close()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Fatal("the service does not come up")
	}
	up()
	client := &http.Client{Timeout: 30 * time.Second}
	post := func(path, body string) (*http.Response, string) {
		t.Helper()
		r, err := client.Post(url+path, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer r.Body.Close()
		var text bytes.Buffer
		_, err = text.ReadFrom(r.Body)
		require.NoError(t, err)
		return r, text.String()
	}
	call := func(n int) string {
		return fmt.Sprintf(`{"model":"m","max_tokens":8,"messages":[{"role":"user","content":"%d %s"}]}`, n, strings.Repeat("x", 8<<10))
	}
	// The disk is full either when a call is recorded, and the call is refused, or when
	// its reply is recorded, and the client waits with it.
	type answered struct {
		status int
		text   string
	}
	told, waits := 0, make(chan answered, 1)
	for full := false; !full; told++ {
		require.Less(t, told, 100)
		body := call(told)
		go func() {
			r, err := client.Post(url+"/rollouts/a/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				waits <- answered{0, err.Error()}
				return
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			waits <- answered{r.StatusCode, fmt.Sprint(string(text), err)}
		}()
		for waiting := true; waiting; {
			select {
			case a := <-waits:
				if waiting = false; a.status != 200 {
					require.Equal(t, 503, a.status, a.text)
					full, waits = true, nil
				}
			case <-time.After(300 * time.Millisecond):
				r, err := client.Get(url + "/healthz")
				require.NoError(t, err)
				r.Body.Close()
				full = r.StatusCode == 503
				waiting = !full
			}
		}
	}
	told-- // the last one got no reply
	require.Greater(t, told, 1)
	for path, shape := range map[string]string{
		"/rollouts/a/v1/chat/completions": `{"error":{"code":503,"message":`,
		"/rollouts/a/v1/completions":      `{"error":{"code":503,"message":`,
		"/rollouts/a/v1/responses":        `{"error":{"code":503,"message":`,
		"/rollouts/a/v1/messages":         `{"error":{"message":`,
		"/rollouts/new/v1/messages":       `{"error":{"message":`,
	} {
		body := call(-1)
		body = body[:len(body)-1] + `,"prompt":"x","input":"x"}`
		if strings.HasSuffix(path, "/completions") && !strings.Contains(path, "chat") {
			body = `{"model":"m","prompt":"` + strings.Repeat("x", 8<<10) + `"}`
		}
		if strings.HasSuffix(path, "/responses") {
			body = `{"model":"m","input":"` + strings.Repeat("x", 8<<10) + `"}`
		}
		r, text := post(path, body)
		require.Equal(t, 503, r.StatusCode, path+": "+text)
		require.NotEmpty(t, r.Header.Get("Retry-After"), path)
		require.Contains(t, text, shape, path)
		require.Contains(t, text, "the journal cannot record", path)
		require.NotContains(t, text, dir, "no path of the service")
	}
	r, err := client.Get(url + "/healthz")
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, 503, r.StatusCode)
	turns := func() *rollout.Rollout {
		t.Helper()
		_, text := ask(t, "GET", url+"/rollouts/a", "")
		x, err := jsonl.Parse([]byte(strings.TrimSpace(text)), jsonl.Options{})
		require.NoError(t, err)
		return x
	}
	shown := turns()
	require.GreaterOrEqual(t, len(shown.Turns), told)

	require.NoError(t, os.WriteFile(room, nil, 0o600))
	if waits != nil {
		a := <-waits
		require.Equal(t, 200, a.status, a.text)
		told++
	}
	for n := 0; ; n++ {
		r, text := post("/rollouts/a/v1/chat/completions", call(told))
		if r.StatusCode == 200 {
			told++
			break
		}
		require.Equal(t, 503, r.StatusCode, text)
		require.Less(t, n, 1000)
		time.Sleep(10 * time.Millisecond)
	}
	before := turns()
	require.Len(t, before.Turns, told)
	service.kill()
	service.start()
	up()
	require.Equal(t, before, turns())
	_, text := post("/rollouts/a/end", `{"group":"g","resolved":true}`)
	var answer struct{ Batch struct{ Rows, Trained int } }
	require.NoError(t, json.Unmarshal([]byte(text), &answer), text)
	require.Equal(t, told, answer.Batch.Rows, "each call is a conversation of its own")
	sampled := 0
	for _, x := range before.Turns {
		sampled += len(x.Output)
	}
	require.Equal(t, sampled, answer.Batch.Trained)
}
