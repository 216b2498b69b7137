package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
)

const hello = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`

// answered is the raw answer that a client receives.
type answered struct {
	status int
	header http.Header
	text   string
}

// spied returns a service, and the number of calls that its engine received.
func spied(t *testing.T) (*serve.Service, func() int64) {
	t.Helper()
	fake := fakeengine.New(fakeengine.Options{})
	var asked atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(name, "X-") || name == "Forwarded" || name == "Via" {
				t.Errorf("the engine is told the client's %s", name)
			}
		}
		if r.Method == http.MethodPost {
			asked.Add(1)
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	s, err := serve.Open(serve.Options{Engines: []engine.Options{{URL: upstream.URL}}, Journal: t.TempDir(), Out: t.TempDir(),
		Groups: serve.Groups{Rows: func(context.Context, []*rollout.Rollout, *export.Writer) error { return nil }}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s, asked.Load
}

// calls returns the calls of a session, one JSON line each.
func calls(t *testing.T, s *serve.Service, session string) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/rollouts/"+strings.ReplaceAll(url.PathEscape(session), ".", "%2E")+"/calls", nil))
	require.Equal(t, 200, w.Code, session)
	return w.Body.String()
}

// dial opens a connection, for requests that no client library can make.
func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c, bufio.NewReader(c)
}

func read(t *testing.T, r *bufio.Reader, method string) answered {
	t.Helper()
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answered{res.StatusCode, res.Header, string(text)}
}

// plain returns a request with the body hello as it is sent over the wire.
func plain(line string, headers ...string) string {
	return fmt.Sprintf("%s\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", line, len(hello), strings.Join(append(headers, ""), "\r\n"), hello)
}

// shape checks that an error has the format of a dialect.
func shape(t *testing.T, text string, anthropic bool) {
	t.Helper()
	var x struct {
		Type  string
		Error struct{ Type, Message string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &x), text)
	require.NotEmpty(t, x.Error.Message)
	require.NotEmpty(t, x.Error.Type)
	require.Equal(t, anthropic, x.Type == "error", text)
}

// TestRequests: malformed and unusual HTTP is answered clearly, in the format of the dialect if the path has
// one, and no path, header or form of address makes the service contact anything but its engine.
func TestRequests(t *testing.T) {
	s, asked := spied(t)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()
	const chat, messages = "POST /rollouts/a/v1/chat/completions", "POST /rollouts/a/v1/messages"
	anthropic := "Anthropic-Version: 2023-06-01"
	for _, x := range []struct {
		request string
		status  int
		session string // session that received the call
	}{
		{plain(chat + " HTTP/1.1"), 200, "a"},
		{plain(chat + " HTTP/1.0"), 200, "a"},
		{plain(chat + "/ HTTP/1.1"), 200, "a"},
		{plain(chat + "?beta=true&x=%zz HTTP/1.1"), 200, "a"},
		{plain(messages + "?beta=true HTTP/1.1"), 200, "a"},
		{plain("POST /v1/messages HTTP/1.1", "X-Session-Id: h"), 200, "h"},
		{plain("POST http://evil/rollouts/b/v1/chat/completions HTTP/1.1"), 200, "b"},
		{plain("POST http://user:pass@127.0.0.1:1/rollouts/c/v1/messages HTTP/1.1", "X-Forwarded-Host: evil", "Forwarded: host=evil", "X-Original-URL: http://evil/", "Via: 1.1 evil"), 200, "c"},
		{plain("POST /rollouts/%2e%2e/v1/chat/completions HTTP/1.1"), 200, ".."},
		{plain("POST /rollouts/a%2f..%2fb%3f%23/v1/chat/completions HTTP/1.1"), 200, "a/../b?#"},
		{plain("POST /rollouts/%E4%BD%A0%20%22%27%3C%3E/v1/messages HTTP/1.1"), 200, "你 \"'<>"},
		// Extra slashes from a base URL redirect to the canonical path.
		{plain("POST /rollouts/a//v1/chat/completions HTTP/1.1"), 307, ""},
		{plain("POST //evil/rollouts/a/v1/chat/completions HTTP/1.1"), 307, ""},
		{plain("POST /rollouts/a/../b/v1/chat/completions HTTP/1.1"), 307, ""},
		{plain("POST /rollouts/a/v1/v1/chat/completions HTTP/1.1"), 404, ""},
		{plain("POST /rollouts/a/v1/v1/messages HTTP/1.1", anthropic), 404, ""},
		{plain("POST /rollouts/a/chat/completions HTTP/1.1"), 404, ""},
		{plain("POST /rollouts/a/messages HTTP/1.1", anthropic), 404, ""},
		{plain("POST /rollouts/a/v1/http://evil/v1/chat/completions HTTP/1.1"), 307, ""},
		{plain("POST /rollouts/a/v1/responses/compact HTTP/1.1"), 404, ""},
		{plain("POST /rollouts//v1/chat/completions HTTP/1.1"), 307, ""},
		{plain("POST /v1/chat/completions HTTP/1.1"), 401, ""},
		{plain("POST /v1/chat/completions HTTP/1.1", "X-Session-Id: a", "X-Session-Id: b"), 401, ""},
		{plain(chat+" HTTP/1.1", "X-Parent-Session-Id: b", "X-Parent-Session-Id: c"), 401, ""},
		{plain("POST /rollouts/a%00b/v1/messages HTTP/1.1"), 401, ""},
		{plain("POST /rollouts/a%ff/v1/messages HTTP/1.1"), 401, ""},
		{plain("POST /rollouts/" + strings.Repeat("x", 300) + "/v1/messages HTTP/1.1"), 401, ""},
		{plain("CONNECT /rollouts/a/v1/chat/completions HTTP/1.1"), 405, ""},
		{plain("TRACE /rollouts/a/v1/chat/completions HTTP/1.1"), 405, ""},
		{plain("OPTIONS /rollouts/a/v1/messages HTTP/1.1"), 405, ""},
		{plain("PUT /rollouts/a/v1/models HTTP/1.1"), 405, ""},
		{"HEAD /rollouts/a/v1/models HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
		{"HEAD /rollouts/a/v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n", 405, ""},
	} {
		line, _, _ := strings.Cut(x.request, "\r\n")
		before := asked()
		c, r := dial(t, addr)
		_, err := io.WriteString(c, x.request)
		require.NoError(t, err)
		method, _, _ := strings.Cut(line, " ")
		got := read(t, r, method)
		require.Equal(t, x.status, got.status, "%s: %s", line, got.text)
		switch {
		case x.session != "":
			require.Contains(t, calls(t, s, x.session), `"state":"ok"`, line)
		case x.status == 307:
			require.Regexp(t, "^/[^/]", got.header.Get("Location"), line)
			require.Equal(t, before, asked(), line)
		case method == "HEAD":
			require.Empty(t, got.text)
		default:
			shape(t, got.text, strings.Contains(line, "/messages"))
			require.Equal(t, before, asked(), line)
		}
		if x.status == 405 {
			require.Contains(t, []string{"POST", "GET"}, got.header.Get("Allow"))
		}
	}
	for _, first := range []string{ // answered by the server before it knows a path
		plain("CONNECT evil:443 HTTP/1.1"), plain("POST /rollouts/%zz/v1/chat/completions HTTP/1.1"), plain("POST /rollouts/a\tb/v1/messages HTTP/1.1"), plain("PRI * HTTP/2.0"), plain("POST evil HTTP/1.1"),
		plain(chat+" HTTP/1.1", "X-Session-Id: a\x01b"), plain(chat+" HTTP/1.1", "Host: y"), plain(chat+" HTTP/1.1", "Content-Length: 7"),
		plain(chat+" HTTP/1.1", "Transfer-Encoding: gzip, chunked"), "GARBAGE\r\n\r\n",
	} {
		c, r := dial(t, addr)
		go io.WriteString(c, first)
		got := read(t, r, "POST")
		require.Contains(t, []int{400, 404, 501, 505}, got.status, "%.60q", first)
	}
	before := asked()
	c, r := dial(t, addr)
	go io.WriteString(c, plain(chat+" HTTP/1.1", "X: "+strings.Repeat("x", 8<<20)))
	if res, err := http.ReadResponse(r, nil); err == nil { // the remaining headers may cut the answer off
		require.Equal(t, 431, res.StatusCode)
	}
	require.Equal(t, before, asked())
}

// TestWire: chunked bodies, bodies announced with Expect, pipelined requests, and streams to clients of
// HTTP/1.0.
func TestWire(t *testing.T) {
	s, asked := spied(t)
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()

	c, r := dial(t, addr)
	chunked := "POST /rollouts/a/v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, part := range []string{hello[:1], hello[1:20], hello[20:]} {
		chunked += fmt.Sprintf("%x\r\n%s\r\n", len(part), part)
	}
	_, err := io.WriteString(c, chunked+"0\r\nX-Session-Id: trailer\r\n\r\n")
	require.NoError(t, err)
	first := read(t, r, "POST")
	require.Equal(t, 200, first.status, first.text)

	for _, x := range []struct {
		session string
		long    int
		status  int
	}{{"a", 0, 200}, {"", 0, 401}, {"a", 1 << 40, 413}} {
		c, r := dial(t, addr)
		_, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Session-Id: %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", x.session, len(hello)+x.long)
		require.NoError(t, err)
		if x.status == 200 {
			line, err := r.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, "100 Continue")
			_, err = r.ReadString('\n')
			require.NoError(t, err)
			_, err = io.WriteString(c, hello)
			require.NoError(t, err)
		}
		got := read(t, r, "POST") // refused before the body is read
		require.Equal(t, x.status, got.status, got.text)
	}

	c, r = dial(t, addr)
	_, err = io.WriteString(c, strings.Repeat(plain("POST /rollouts/p/v1/chat/completions HTTP/1.1"), 3)+plain("POST /rollouts/p/v1/messages HTTP/1.1"))
	require.NoError(t, err)
	before := asked()
	var ids []string
	for range 3 {
		got := read(t, r, "POST")
		require.Equal(t, 200, got.status, got.text)
		ids = append(ids, got.text)
	}
	require.Contains(t, read(t, r, "POST").text, `"type":"message"`)
	require.LessOrEqual(t, asked()-before, int64(2), "the same body is one call")
	require.Len(t, ids, 3)

	c, r = dial(t, addr)
	stream := strings.Replace(hello, "{", `{"stream":true,`, 1)
	_, err = fmt.Fprintf(c, "POST /rollouts/old/v1/messages HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(stream), stream)
	require.NoError(t, err)
	got := read(t, r, "POST")
	require.Equal(t, 200, got.status)
	require.Contains(t, got.text, "event: message_stop")
	require.NotContains(t, got.header.Get("Transfer-Encoding"), "chunked")
}
