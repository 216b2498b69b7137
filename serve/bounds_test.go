package serve_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
)

// bodies are a first call in each dialect, by path.
var bodies = map[string]string{
	"chat/completions": `{"model":"m","messages":[{"role":"user","content":"%v"}]}`,
	"completions":      `{"model":"m","prompt":"%v"}`,
	"responses":        `{"model":"m","input":"%v"}`,
	"messages":         `{"model":"m","max_tokens":5000,"messages":[{"role":"user","content":"%v"}]}`,
}

// asks sends a request to a service.
type asks = func(method, path, body string) (int, string)

// bound is a limit, and how a test reaches it.
type bound struct {
	options serve.Options
	held    int                    // calls that the engine does not answer yet
	fill    func(*testing.T, asks) // nil = nothing else is needed
	session string                 // session that exceeds the limit; "down" has no engine
	text    string                 // part of the error text
	room    func(*testing.T, asks) // makes room; nil = the held calls end
	never   bool                   // room never becomes free
}

// callOf makes a call of a session, endOf ends the session.
func callOf(t *testing.T, ask asks) {
	code, text := ask("POST", "/rollouts/a/v1/chat/completions", fmt.Sprintf(bodies["chat/completions"], "one"))
	require.Equal(t, 200, code, text)
}

func endOf(t *testing.T, ask asks) {
	code, text := ask("POST", "/rollouts/a/end", `{"group":"g","resolved":true}`)
	require.Equal(t, 200, code, text)
}

// post returns a function that posts to a path.
func post(path, body string) func(*testing.T, asks) {
	return func(t *testing.T, ask asks) {
		code, text := ask("POST", path, body)
		require.Equal(t, 200, code, text)
	}
}

// TestEachBound: a client beyond a limit gets 429 or 503 and Retry-After in the format of its dialect, and
// succeeds when there is room.
func TestEachBound(t *testing.T) {
	for name, x := range map[string]bound{
		"calls that run":         {options: serve.Options{Gate: gate.Options{MaxCalls: 1, MaxWaiting: 1}}, held: 2, session: "b", text: "calls wait"},
		"calls of a session":     {options: serve.Options{Gate: gate.Options{MaxPerSession: 1, MaxWaiting: 1}}, held: 2, session: "held", text: "calls wait"},
		"requests":               {options: serve.Options{Proxy: proxy.Options{MaxCalls: 1}}, held: 1, session: "b", text: "too many requests"},
		"calls in flight":        {options: serve.Options{Record: live.Options{MaxInFlight: 1}}, held: 1, session: "held", text: "at most 1 may"},
		"calls of a rollout":     {options: serve.Options{Record: live.Options{MaxCalls: 1}}, fill: callOf, session: "a", text: "at most 1 are allowed", never: true},
		"sessions":               {options: serve.Options{Record: live.Options{MaxSessions: 1}, Groups: serve.Groups{Folder: true}}, fill: callOf, session: "b", text: "at most 1 are allowed", room: endOf},
		"groups that wait":       {options: serve.Options{Groups: serve.Groups{MaxUndelivered: 1}}, fill: func(t *testing.T, ask asks) { callOf(t, ask); endOf(t, ask) }, session: "b", text: "1 groups wait for the trainer", room: post("/batches/ack", `{"seq":1}`)},
		"a pause":                {fill: post("/pause", `{"policy":"reject"}`), session: "b", text: "calls are paused", room: post("/resume", "")},
		"an engine that is down": {session: "down", text: "engine", never: true},
	} {
		t.Run(name, func(t *testing.T) { x.test(t) })
	}
}

func (x *bound) test(t *testing.T) {
	fake := fakeengine.New(fakeengine.Options{Seed: 2})
	hold, came := make(chan struct{}), make(chan struct{}, 16)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case x.session == "down":
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case x.held > 0 && r.Method == http.MethodPost:
			came <- struct{}{}
			<-hold
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	x.options.Groups.Size = 1
	s, ask := on(t, upstream.URL, x.options)
	ended := make(chan int, x.held)
	for i := range x.held {
		go func() {
			code, _ := ask("POST", "/rollouts/held/v1/chat/completions", fmt.Sprintf(bodies["chat/completions"], fmt.Sprint("held ", i)))
			ended <- code
		}()
		if i == 0 {
			<-came
			continue
		}
		for text := ""; !strings.Contains(text, "turnpack_gate_waiting 1"); {
			_, text = ask("GET", "/metrics", "")
		}
	}
	if x.fill != nil {
		x.fill(t, ask)
	}
	for path, body := range bodies {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/rollouts/"+x.session+"/v1/"+path, strings.NewReader(fmt.Sprintf(body, "beyond"))))
		require.Contains(t, []int{429, 503}, w.Code, "%s: %s", path, w.Body)
		require.NotEmpty(t, w.Header().Get("Retry-After"), path)
		shape(t, w.Body.String(), path == "messages")
		require.Contains(t, w.Body.String(), x.text)
	}
	close(hold)
	for range x.held {
		require.Equal(t, 200, <-ended)
	}
	if x.room != nil {
		x.room(t, ask)
	}
	for path, body := range bodies {
		for code := 0; !x.never && code != 200; { // a folder receives its batch a moment later
			var text string
			code, text = ask("POST", "/rollouts/"+x.session+"/v1/"+path, fmt.Sprintf(body, "beyond"))
			require.Contains(t, []int{200, 429}, code, text)
		}
	}
}

// TestReplyIsBounded: if an engine's reply never ends, streamed or not, the client gets an error.
func TestReplyIsBounded(t *testing.T) {
	fake := httptest.NewServer(fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: strings.Repeat("x", 4096)}}, Event: 8192}))
	t.Cleanup(fake.Close)
	e, err := engine.New(engine.Options{URL: fake.URL, MaxReply: 1000})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	recorder, err := live.New(live.Options{})
	require.NoError(t, err)
	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	for path, body := range bodies {
		for _, stream := range []string{"", `"stream":true,`} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/rollouts/r/v1/"+path, strings.NewReader(strings.Replace(fmt.Sprintf(body, len(stream)), "{", "{"+stream, 1))))
			require.Regexp(t, "over 1000 bytes|longer than is allowed", w.Body.String(), "%s %s", path, stream)
			require.Less(t, w.Body.Len(), 4096)
		}
	}
}

// TestSteeringIsBounded: the requests of harnesses, trainers and operators are limited too.
func TestSteeringIsBounded(t *testing.T) {
	fake := httptest.NewServer(fakeengine.New(fakeengine.Options{Seed: 2}))
	t.Cleanup(fake.Close)
	_, ask := on(t, fake.URL, serve.Options{Groups: serve.Groups{Size: 1}})
	callOf(t, ask)
	long := strings.Repeat(" ", 17<<20)
	for path, body := range map[string]string{"/rollouts/a/end": `{"group":"g","resolved":true`, "/batches/ack": `{"seq":1`, "/pause": `{"policy":"hold"`, "/version": `{"version":1`} {
		code, text := ask("POST", path, body+long+"}")
		require.Equal(t, 400, code, text)
		require.Contains(t, text, "too large", path)
	}
	endOf(t, ask)
}
