package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// inside answers requests without a network.
type inside struct{ http.Handler }

func (h inside) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body != nil {
		defer r.Body.Close()
	} else {
		r.Body = http.NoBody
	}
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func within(t testing.TB, h http.Handler, kind string) (*proxy.Handler, *live.Recorder) {
	e, err := engine.New(engine.Options{URL: "http://engine", Kind: kind, Client: &http.Client{Transport: inside{h}}})
	require.NoError(t, err)
	recorder, err := live.New(live.Options{})
	require.NoError(t, err)
	p, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
	require.NoError(t, err)
	return p, recorder
}

var paths = []string{"chat/completions", "completions", "responses", "messages", "messages/count_tokens", "models"}

// FuzzClients: any request of a client is answered, and the record stays consistent.
func FuzzClients(f *testing.F) {
	for name, q := range requests {
		f.Add([]byte(q.body+`,"stream":true}`), map[string]byte{"chat": 0, "responses": 2, "anthropic": 3}[name])
	}
	f.Add([]byte(`{"prompt":[1,2],"n":2,"logprobs":1}`), byte(1))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"x"}}]}],"tools":[{}]}`), byte(4))
	f.Fuzz(func(t *testing.T, body []byte, which byte) {
		p, recorder := within(t, fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{{Content: "ok"}}}), "vllm")
		defer p.Close()
		w := httptest.NewRecorder()
		path := paths[int(which)%len(paths)]
		p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/rollouts/r/v1/"+path, strings.NewReader(string(body))))
		require.GreaterOrEqual(t, w.Code, 200)
		require.NotEmpty(t, w.Body.String())
		if s, ok := recorder.Session("r"); ok {
			r, err := s.Rollout()
			require.NoError(t, err)
			require.NoError(t, r.Validate())
			for _, c := range madeCalls(t, s) {
				require.NotEqual(t, live.StateRunning, c.State)
			}
		}
	})
}

// FuzzEngines: for any answer of an engine the client gets an answer in its dialect, and the record stays
// consistent.
func FuzzEngines(f *testing.F) {
	f.Add([]byte(sglangCumulative), byte(4))
	f.Add([]byte(sglangIncremental), byte(5))
	f.Add([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":9,\"function\":{}}]},\"finish_reason\":\"stop\",\"token_ids\":[-1]}]}\n\ndata: [DONE]\n\n"), byte(2))
	f.Add([]byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop","token_ids":[1],"logprobs":{"content":[{"logprob":NaN}]}}],"prompt_token_ids":[1]}`), byte(0))
	f.Fuzz(func(t *testing.T, answer []byte, which byte) {
		stream := which&1 == 0
		kind := "vllm"
		if which&4 != 0 {
			kind = "sglang"
		}
		p, recorder := within(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if b, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(b), `"stream":true`) {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			w.Write(answer)
		}), kind)
		defer p.Close()
		name := []string{"chat", "responses", "anthropic"}[int(which>>3)%3]
		path, body := requests[name].path, requests[name].body
		if which&2 != 0 {
			path, body = "/v1/completions", `{"prompt":[1,2]`
		}
		if stream {
			body += `,"stream":true`
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/rollouts/r"+path, strings.NewReader(body+"}")))
		require.NotEmpty(t, w.Body.String())
		s, ok := recorder.Session("r")
		require.True(t, ok)
		r, err := s.Rollout()
		require.NoError(t, err)
		require.NoError(t, r.Validate())
		require.NotEqual(t, live.StateRunning, madeCalls(t, s)[0].State)
	})
}
