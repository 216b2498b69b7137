package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

func ask(h http.Handler, method, path, body string) (int, string, http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	text, _ := io.ReadAll(w.Body)
	return w.Code, string(text), w.Header()
}

func TestEndpoints(t *testing.T) {
	service, err := Open(Options{Engines: []engine.Options{{URL: "http://127.0.0.1:1"}}, Journal: t.TempDir(), Out: t.TempDir(), Groups: Groups{Rows: rows, Size: 1}})
	require.NoError(t, err)
	defer func() { require.NoError(t, service.Close(t.Context())) }()
	h, g := service.Handler(), service.gate
	s, err := service.record.Begin(t.Context(), live.Start{ID: "a<b>"})
	require.NoError(t, err)
	for range 2 {
		c, err := s.Begin(t.Context(), live.Request{Prompt: []rollout.TokenID{1}})
		require.NoError(t, err)
		require.NoError(t, c.End(t.Context(), live.Reply{Output: []rollout.TokenID{2, 3}, Logprobs: []float32{-1, -1}, Usage: live.Usage{PromptTokens: 1, CompletionTokens: 2}}))
	}
	c, err := s.Begin(t.Context(), live.Request{Prompt: []rollout.TokenID{1}})
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), live.Reply{Output: []rollout.TokenID{2, 3}, Logprobs: []float32{-1, -1}, Usage: live.Usage{CompletionTokens: 9}}))

	status, text, _ := ask(h, "GET", "/rollouts/a%3Cb%3E", "")
	require.Equal(t, 200, status)
	r, err := jsonl.Parse([]byte(strings.TrimSuffix(text, "\n")), jsonl.Options{})
	require.NoError(t, err)
	require.Len(t, r.Turns, 3)
	status, text, _ = ask(h, "GET", "/rollouts/a%3Cb%3E/calls", "")
	require.Equal(t, 200, status)
	require.Equal(t, 3, strings.Count(text, "\n"))
	for _, name := range []string{`"id":`, `"state":"ok"`, `"output_tokens":2`, `"join":"forks"`, `"drift":0`} {
		require.Contains(t, text, name)
	}
	for _, path := range []string{"/rollouts/b", "/rollouts/b/calls"} {
		status, _, _ = ask(h, "GET", path, "")
		require.Equal(t, 404, status)
	}

	status, text, _ = ask(h, "GET", "/debug/sessions?format=json", "")
	require.Equal(t, 200, status)
	require.Contains(t, text, `"incomplete":1,"sampled":6,"fidelity":0.66`)
	require.NotContains(t, text, `"began":"0001`)
	status, text, _ = ask(h, "GET", "/debug/sessions", "")
	require.Equal(t, 200, status)
	require.Contains(t, text, "a&lt;b&gt;")

	status, text, _ = ask(h, "POST", "/rollouts/lost/end", `{"group":"g","failure":"a\"\n"}`)
	require.Equal(t, 200, status, text)
	status, text, _ = ask(h, "GET", "/healthz", "")
	require.Equal(t, 200, status, text)
	for path, body := range map[string]string{"/pause": `{"policy":"stop"}`, "/version": `{}`, "/resume": `{"x":1}`} {
		status, text, _ = ask(h, "POST", path, body)
		require.Equal(t, 400, status, text)
	}
	for _, c := range [][2]string{{"/pause", ""}, {"/pause", `{"policy":"finish"}`}, {"/resume", ""}, {"/version", `{"version":7}`}, {"/pause", `{"policy":"reject"}`}} {
		status, text, _ = ask(h, "POST", c[0], c[1])
		require.Equal(t, 200, status, text)
	}
	require.Equal(t, int32(7), *g.Version())
	require.EqualValues(t, "reject", g.Stats().Paused)

	status, text, header := ask(h, "GET", "/metrics", "")
	require.Equal(t, 200, status)
	require.Contains(t, header.Get("Content-Type"), "version=0.0.4")
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"\})? [-+0-9.e]+)$`)
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		require.Regexp(t, line, l)
	}
	for _, want := range []string{"turnpack_recorder_calls{state=\"ok\"} 2\n", "turnpack_journal_segments 1\n", "turnpack_journal_queued 0\n", "turnpack_gate_version 7\n", `turnpack_delivery_left_out{reason="a\"\n"} 1`, `turnpack_engine_running{engine="http://127.0.0.1:1"} 0`} {
		require.Contains(t, text, want)
	}
}

// The page of sessions shows those whose record can be read, and says of the others that it cannot.
func TestSessionsThatCannotBeRead(t *testing.T) {
	o := Options{Engines: []engine.Options{{URL: "http://127.0.0.1:1"}}, Journal: t.TempDir(), Out: t.TempDir(), Record: live.Options{MaxMemory: 1}, Groups: Groups{Rows: rows, Size: 1}}
	service, err := Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, service.Close(t.Context())) }()
	for _, id := range []string{"cold", "warm"} { // the bytes of one are above the limit of memory
		s, err := service.record.Begin(t.Context(), live.Start{ID: id})
		require.NoError(t, err)
		c, err := s.Begin(t.Context(), live.Request{Prompt: []rollout.TokenID{1}})
		require.NoError(t, err)
		require.NoError(t, c.End(t.Context(), live.Reply{Output: []rollout.TokenID{2}, Logprobs: []float32{-1}}))
	}
	files, err := filepath.Glob(filepath.Join(o.Journal, "*.tpj"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Rename(files[0], files[0]+".away"))
	status, text, _ := ask(service.Handler(), "GET", "/debug/sessions?format=json", "")
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"id":"warm"`)
	require.Regexp(t, `"id":"cold".*"error":".*the segment was removed`, text)
	status, text, _ = ask(service.Handler(), "GET", "/debug/sessions", "")
	require.Equal(t, 200, status, text)
	require.Regexp(t, `cold</a><td colspan="9">cannot be read: .*the segment was removed`, text)
	require.Regexp(t, `warm</a><td>\d{4}-`, text)
	require.NoError(t, os.Rename(files[0]+".away", files[0]))
}
