package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
)

func open(t *testing.T) *serve.Service {
	t.Helper()
	fake := httptest.NewServer(fakeengine.New(fakeengine.Options{}))
	t.Cleanup(fake.Close)
	s, err := serve.Open(serve.Options{Engines: []engine.Options{{URL: fake.URL}}, Journal: t.TempDir(), Out: t.TempDir(),
		Groups: serve.Groups{Size: 1, Rows: func(context.Context, []*rollout.Rollout, *export.Writer) error { return nil }}})
	require.NoError(t, err)
	return s
}

// With a separate Admin address, the endpoints that steer the service are not on the agents' address.
func TestAdmin(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	admin := free.Addr().String()
	require.NoError(t, free.Close())
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	s := open(t)
	go func() {
		ended <- s.Serve(ctx, serve.Listen{Agents: "127.0.0.1:0", Admin: admin, Drain: time.Second, Ready: func(a net.Addr) { ready <- a.String() }})
	}()
	agents := <-ready
	ask := func(addr, request, body string) int {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	call := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	require.Equal(t, 200, ask(agents, "POST /rollouts/a/v1/chat/completions", call))
	require.Equal(t, 200, ask(agents, "GET /healthz", ""))
	for _, x := range []string{"POST /pause", "POST /resume", "GET /metrics", "GET /debug/sessions", "GET /rollouts/a", "GET /rollouts/a/calls", "GET /batches"} {
		require.Equal(t, 404, ask(agents, x, ""), x)
	}
	for _, x := range []string{"GET /metrics", "GET /debug/sessions", "GET /rollouts/a", "GET /rollouts/a/calls"} {
		require.Equal(t, 200, ask(admin, x, ""), x)
	}
	stop()
	require.NoError(t, <-ended)
}

// Calls that do not end in the time to drain are ended, and the error says so. Their clients are told in the format
// of the dialect, and the stream ends as HTTP says it should: a cut connection would look like a network fault.
func TestDrainTakesTooLong(t *testing.T) {
	fake := fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: strings.Repeat("word ", 1<<7)}}, Faults: fakeengine.Faults{Delay: 100 * time.Millisecond}})
	running := make(chan struct{}, 8)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			running <- struct{}{}
			if err != nil || !bytes.Contains(body, []byte(`"stream":true`)) {
				<-r.Context().Done() // a reply that does not come
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		fake.ServeHTTP(w, r)
	}))
	defer upstream.Close()
	s, err := serve.Open(serve.Options{Engines: []engine.Options{{URL: upstream.URL}}, Journal: t.TempDir(), Out: t.TempDir(), Groups: serve.Groups{Rows: plainRows}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	type answer struct {
		path, stream, text string
		code               int
		err                error
	}
	answers := make(chan answer, 8)
	ask := func(addr, path, stream string) {
		a := answer{path: path, stream: stream}
		defer func() { answers <- a }()
		body := strings.Replace(fmt.Sprintf(bodies[path], "hi"), "{", "{"+stream, 1)
		r, err := http.Post("http://"+addr+"/rollouts/a/v1/"+path, "", strings.NewReader(body))
		if a.err = err; err == nil {
			defer r.Body.Close()
			var text []byte
			text, a.err = io.ReadAll(r.Body)
			a.text, a.code = string(text), r.StatusCode
		}
	}
	err = s.Serve(ctx, serve.Listen{Agents: "127.0.0.1:0", Drain: 50 * time.Millisecond, Ready: func(a net.Addr) {
		for path := range bodies {
			go ask(a.String(), path, "")
			go ask(a.String(), path, `"stream":true,`)
		}
		go func() {
			for range cap(running) {
				<-running
			}
			time.AfterFunc(100*time.Millisecond, stop)
		}()
	}})
	require.EqualError(t, err, "Drain: what still ran after 50ms was ended")
	for range cap(answers) {
		a := <-answers
		require.NoError(t, a.err, "%s %s", a.path, a.stream)
		require.Contains(t, a.text, "the call was ended before its reply was whole", "%s %s", a.path, a.stream)
		if a.stream == "" {
			require.Equal(t, 503, a.code, a.path)
			shape(t, a.text, a.path == "messages")
		}
	}
}

// An address that cannot be listened at is reported under its field.
func TestAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for field, o := range map[string]serve.Listen{"Agents": {}, "Admin": {Agents: "127.0.0.1:0"}} {
		if field == "Agents" {
			o.Agents = taken.Addr().String()
		} else {
			o.Admin = taken.Addr().String()
		}
		err := open(t).Serve(t.Context(), o)
		require.ErrorIs(t, err, rollout.KindInput)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		require.Equal(t, []string{field}, fieldsOf(err))
	}
}

// A client that stops reading does not block its handler forever; one that keeps reading may wait longer than
// that for the reply.
func TestClientsThatTakeNothing(t *testing.T) {
	const patience = time.Second
	ended := make(chan error, 1)
	server := httptest.NewUnstartedServer(serve.Patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if late, ok := strings.CutPrefix(r.URL.Path, "/late"); ok {
			time.Sleep(4 * patience / 3)
			if late != "" {
				w.WriteHeader(http.StatusNoContent)
			} else {
				_, _ = w.Write([]byte("it came"))
			}
			return
		}
		var err error
		for b := make([]byte, 1<<20); err == nil; {
			_, err = w.Write(b)
		}
		ended <- err
	}), patience))
	server.Config.WriteTimeout = patience
	server.Start()
	defer server.Close()
	for path, want := range map[string]string{"/late": "it came", "/late/nothing": ""} {
		res, err := http.Get(server.URL + path)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want, string(text))
	}

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
}

// A client that stops within its body does not occupy its connection forever, whether the body is read or not;
// one that sent all of it may wait longer than that for the reply.
func TestClientsThatSendNothing(t *testing.T) {
	const patience = 300 * time.Millisecond
	server := httptest.NewServer(serve.Patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unread" {
			return
		}
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case <-r.Context().Done():
		case <-time.After(2 * patience):
			_, _ = w.Write([]byte("it came"))
		}
	}), patience))
	defer server.Close()
	res, err := http.Post(server.URL, "text/plain", strings.NewReader("whole"))
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "it came", string(text))
	for _, path := range []string{"/", "/unread"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
		_, err = io.ReadAll(conn)
		require.NoError(t, err, "%s: the server closes the connection", path)
	}
}
