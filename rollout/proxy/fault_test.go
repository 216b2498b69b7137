package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// TestEnginesThatLie: each kind of bad reply is sent as it arrived and marked, or answered with an error in the
// dialect's format; its ids are kept and never trained.
func TestEnginesThatLie(t *testing.T) {
	for fault, c := range map[string]struct {
		f      fakeengine.Faults
		stream bool // the fault shows in streams only
		told   bool // the reply is sent
		why    string
	}{
		"count":     {fakeengine.Faults{Count: 1}, false, true, "completion tokens"},
		"duplicate": {fakeengine.Faults{Duplicate: true}, false, true, "log probabilities"},
		"drop":      {fakeengine.Faults{Drop: true}, true, true, "completion tokens"},
		"nan":       {fakeengine.Faults{NaN: true}, false, true, "log probability"},
		"beyond":    {fakeengine.Faults{Beyond: true}, false, true, "none of the model's"},
		"garble":    {fakeengine.Faults{Garble: true}, true, false, "no JSON object"},
		"cut":       {fakeengine.Faults{Cut: 3000}, false, false, "stop"},
	} {
		for name, q := range requests {
			for _, stream := range []bool{false, true} {
				if c.stream && !stream {
					continue
				}
				t.Run(fmt.Sprint(fault, name, stream), func(t *testing.T) {
					w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Faults: c.f, Event: 4})
					body := q.body + "}"
					if stream {
						body = q.body + `,"stream":true}`
					}
					status, answer := w.ask("/rollouts/r"+q.path, body)
					call := w.calls("r")[0]
					r := w.rollout("r")
					require.NoError(t, r.Validate())
					for i := range r.Turns {
						require.NotEqual(t, "", r.Turns[i].Incomplete, "it is never trained")
					}
					require.Contains(t, call.Why, c.why)
					if c.told {
						require.Equal(t, 200, status)
						require.Equal(t, live.StateIncomplete, call.State)
						text, _, _ := told(t, name, stream, answer)
						require.Equal(t, "Reading é.", text)
						require.Len(t, r.Turns, 1)
						return
					}
					require.Equal(t, live.StateAborted, call.State)
					if !stream || status != 200 { // nothing of the stream was sent yet
						require.Equal(t, 502, status, answer)
						requireError(t, name, answer)
						return
					}
					names, data := events(t, answer)
					last := data[len(data)-1]
					switch name {
					case "chat":
						require.NotEmpty(t, at(last, "error", "message"))
						require.NotContains(t, names, "[DONE]")
					case "responses":
						require.Equal(t, "response.failed", names[len(names)-1])
						require.NotEmpty(t, at(last, "response", "error", "message"))
					case "anthropic":
						require.Equal(t, "error", names[len(names)-1])
						require.Equal(t, "api_error", at(last, "error", "type"))
					}
				})
			}
		}
	}
}

// TestCompletionsOfLiars is TestEnginesThatLie for completions.
func TestCompletionsOfLiars(t *testing.T) {
	for fault, f := range map[string]fakeengine.Faults{"count": {Count: 1}, "duplicate": {Duplicate: true}, "nan": {NaN: true}, "beyond": {Beyond: true}, "garble": {Garble: true}, "cut": {Cut: 2000}} {
		for _, stream := range []string{"", `,"stream":true`} {
			if fault == "garble" && stream == "" {
				continue // the fault is an event that is not JSON
			}
			w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: strings.Repeat("long ", 40)}}, Faults: f, Event: 4})
			status, answer := w.ask("/rollouts/r/v1/completions", `{"model":"m","prompt":"x","max_tokens":1000`+stream+"}")
			call := w.calls("r")[0]
			for _, turn := range w.rollout("r").Turns {
				require.NotEmpty(t, turn.Incomplete, "it is never trained")
			}
			switch {
			case fault != "garble" && fault != "cut":
				require.Equal(t, 200, status, answer)
				require.Equal(t, live.StateIncomplete, call.State, fault+stream)
				data := []map[string]any{nil}
				if stream != "" {
					_, data = events(t, answer)
				} else {
					data[0] = parsed(t, answer)
				}
				said := ""
				for _, x := range data {
					s, _ := at(x, "choices", 0, "text").(string)
					said += s
				}
				require.Equal(t, strings.Repeat("long ", 40), said, fault)
			case stream == "" || status != 200: // nothing of the stream was sent yet
				require.Equal(t, 502, status, answer)
				requireError(t, "completions", answer)
				require.Equal(t, live.StateAborted, call.State)
			default:
				names, data := events(t, answer)
				require.NotEmpty(t, at(data[len(data)-1], "error", "message"), fault)
				require.NotContains(t, names, "[DONE]")
				require.Equal(t, live.StateAborted, call.State)
			}
		}
	}
}

// requireError checks the format of an error.
func requireError(t *testing.T, dialect, body string) {
	t.Helper()
	v := parsed(t, body)
	require.NotEmpty(t, at(v, "error", "message"), body)
	require.NotEmpty(t, at(v, "error", "type"), body)
	if dialect == "anthropic" {
		require.Equal(t, "error", v["type"])
	}
}

// TestDropsAreLearned: after its first reply a server that drops ids from streams with tools is asked for
// unstreamed replies, and Status says so; Probe detects it beforehand.
func TestDropsAreLearned(t *testing.T) {
	for _, probe := range []bool{false, true} {
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Faults: fakeengine.Faults{Drop: true}}, func(o *proxy.Options) {
			if probe {
				require.NoError(t, engine.Probe(t.Context(), o.Engine))
			}
		})
		q := requests["chat"]
		for i := range 2 {
			_, body := w.ask(fmt.Sprintf("/rollouts/r%d%s", i, q.path), q.body+`,"stream":true}`)
			text, _, calls := told(t, "chat", true, body)
			require.Equal(t, "Reading é.", text)
			require.Len(t, calls, 2)
			want := live.StateOK
			if i == 0 && !probe {
				want = live.StateIncomplete
			}
			require.Equal(t, want, w.calls(fmt.Sprint("r", i))[0].State)
		}
		require.Equal(t, "drops ids", w.engine.Status()[0].Streams)
	}
	w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}})
	w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`,"stream":true}`)
	require.Equal(t, "every id", w.engine.Status()[0].Streams)
}

// TestErrors: refusals of the engine and of the proxy have the format of each dialect.
func TestErrors(t *testing.T) {
	for _, status := range []int{400, 401, 404, 429, 500, 503} {
		w := newWorld(t, fakeengine.Options{Faults: fakeengine.Faults{Fail: 100, Status: status}})
		for name, q := range requests {
			got, body := w.ask("/rollouts/r-"+name+q.path, q.body+`,"stream":true}`)
			want := status
			if status == 401 {
				want = 502 // the proxy's key is not the client's concern
			}
			require.Equal(t, want, got, body)
			requireError(t, name, body)
			require.Equal(t, live.StateAborted, w.calls("r-" + name)[0].State)
		}
	}
	w := newWorld(t, fakeengine.Options{})
	for name, q := range requests {
		for _, bad := range []string{`{`, `[]`, `{}`, `{"messages":7,"input":7}`, `{"messages":[{"role":7}],"input":[7]}`, `{"messages":[7],"input":[{"type":"x"}]}`, `{"model":"a","model":"b"}`,
			`{"messages":[{"role":"user","content":7}],"input":[{"role":"user","content":7}]}`, "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}],\"input\":\"\xff\"}",
			`{"messages":[],"input":[]}`, `{"messages":[{"content":"x"}],"input":[{"role":"robot","content":"x"}]}`, `{"messages":[{"role":"user","content":[7]}],"input":[{"role":"user","content":[{"type":"x"}]}]}`,
			`{"messages":[{"role":"assistant","tool_calls":7}],"input":[{"type":"function_call","call_id":"c"}]}`, `{"messages":[{"role":"user","content":"x"}],"input":"x","tools":7}`, `{"messages":[{"role":"user","content":"x"}],"input":"x","stream":"yes"}`} {
			status, body := w.ask("/rollouts/bad"+q.path, bad)
			require.Equal(t, 400, status, "%s %s: %s", name, bad, body)
			requireError(t, name, body)
		}
		status, body := w.ask(q.path, q.body+"}")
		require.Equal(t, 401, status, body)
		requireError(t, name, body)
		res := w.send(t.Context(), "/rollouts/r"+q.path, "")
		res.Body.Close()
		require.Equal(t, 405, res.StatusCode)
		require.Equal(t, "POST", res.Header.Get("Allow"))
	}
	status, body := w.ask("/rollouts/r/v1/embeddings", "{}")
	require.Equal(t, 404, status)
	requireError(t, "chat", body)
	_, body = w.ask("/rollouts/r/v1/embeddings", "{}", "Anthropic-Version", "2023-06-01")
	requireError(t, "anthropic", body)
	status, body = w.ask("/rollouts/r/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"x"}]}`, "Anthropic-Version", "2023-06-01")
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"choices"`, "the path decides, not a header that a gateway passes on")
}

// TestBounds: requests beyond a limit are refused, and those within it continue.
func TestBounds(t *testing.T) {
	w := newWorld(t, fakeengine.Options{}, func(o *proxy.Options) {
		o.MaxBody = 2000
		var err error
		o.Recorder, err = live.New(live.Options{MaxSessions: 1})
		require.NoError(t, err)
	})
	for name, q := range requests {
		status, body := w.ask("/rollouts/r"+q.path, q.body+`,"metadata":{"x":"`+strings.Repeat("x", 2000)+`"}}`)
		require.Equal(t, 413, status)
		requireError(t, name, body)
	}
	q := requests["chat"]
	status, _ := w.ask("/rollouts/r"+q.path, q.body+"}")
	require.Equal(t, 200, status)
	res := w.send(t.Context(), "/rollouts/r2"+q.path, q.body+"}")
	res.Body.Close()
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))

	w = newWorld(t, fakeengine.Options{}, func(o *proxy.Options) {
		o.MaxCalls, o.Gate = 1, &gate.Gate{}
		require.NoError(t, o.Gate.Pause(t.Context(), "hold"))
	})
	ctx, cancel := withCancel()
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/rollouts/r"+q.path, strings.NewReader(q.body+"}"))
		if err == nil {
			if res, err := http.DefaultClient.Do(r); err == nil {
				res.Body.Close()
			}
		}
	}()
	require.Eventually(t, func() bool { return w.handler.Stats().Running == 1 }, waitLong, waitShort)
	status, _ = w.ask("/rollouts/r2"+q.path, q.body+"}")
	require.Equal(t, 429, status)
	cancel()
}

// TestCutAnywhere: cutting an engine's stream at any byte gives the same recorded call, or one that is marked;
// no id that arrived is lost.
func TestCutAnywhere(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 13
	}
	for kind, streams := range map[string][]string{"vllm": {recordStream(t)}, "sglang": {sglangCumulative, sglangIncremental}} {
		for _, stream := range streams {
			full := 0
			cut := len(stream)
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, stream[:cut])
			}))
			defer upstream.Close()
			w := (&world{t: t}).on(upstream.URL, kind)
			path, body := "/v1/chat/completions", cutRequest+`,"stream":true}`
			if kind == "sglang" {
				path, body = "/v1/completions", `{"model":"m","prompt":[1,2,3],"stream":true}`
			}
			var whole []rollout.TokenID
			for cut = len(stream); cut >= 0; cut -= step {
				id := fmt.Sprint("r", kind, len(stream), "-", cut)
				w.ask("/rollouts/"+id+path, body)
				call := w.calls(id)[0]
				r := w.rollout(id)
				var out []rollout.TokenID
				if len(r.Turns) > 0 {
					out = r.Turns[0].Output
				}
				if cut == len(stream) {
					whole = out
					require.NotEmpty(t, whole)
				}
				switch call.State {
				case live.StateOK:
					full++
					require.Equal(t, whole, out)
				case live.StateAborted, live.StateIncomplete:
					require.True(t, slices.Equal(whole[:len(out)], out), "cut at %d: %v", cut, out)
				default:
					t.Fatalf("cut at %d: %s", cut, call.State)
				}
			}
			require.GreaterOrEqual(t, full, 1)
			require.LessOrEqual(t, full, 3, "only the end of [DONE] may be missing")
		}
	}
}

// TestSilence: a stream that stops and stays open is an error after a time, in each dialect, and the ids that
// arrived are kept.
func TestSilence(t *testing.T) {
	stream := recordStream(t)
	texts := regexp.MustCompile(`"delta":\{[^{}]*(\{[^{}]*\}[^{}]*)*\}`).ReplaceAllString(stream, `"text":"x"`)
	hold := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(r.URL.Path, "chat") {
			fmt.Fprint(w, stream[:len(stream)/2])
		} else {
			fmt.Fprint(w, texts[:len(texts)/2])
		}
		w.(http.Flusher).Flush()
		<-hold
	}))
	defer upstream.Close()
	defer close(hold)
	e, err := engine.New(engine.Options{URL: upstream.URL, Silence: 2 * time.Second})
	require.NoError(t, err)
	w := (&world{t: t}).on(upstream.URL, "vllm", func(o *proxy.Options) { o.Engine = e })
	var wg sync.WaitGroup
	ask := func(name, path, body string) {
		wg.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/rollouts/"+name+path, strings.NewReader(body+`,"stream":true}`))
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			if !strings.Contains(answer.Body.String(), "says nothing for 2s") {
				t.Error(name, answer.Body)
			}
		})
	}
	for name, q := range requests {
		ask(name, q.path, q.body)
	}
	ask("completions", "/v1/completions", `{"model":"m","prompt":"x"`)
	wg.Wait()
	for _, name := range []string{"chat", "responses", "anthropic", "completions"} {
		call := w.calls(name)[0]
		require.Equal(t, live.StateAborted, call.State, name)
		require.NotZero(t, call.OutputTokens, name)
	}
	require.NotZero(t, e.Status()[0].Failed)
}

// TestBadCompletions: invalid requests in the dialect of completions.
func TestBadCompletions(t *testing.T) {
	w := newWorld(t, fakeengine.Options{})
	for _, bad := range []string{`{`, `[]`, `{}`, `7`, `{"prompt":7}`, `{"prompt":[]}`, `{"prompt":["a","b"]}`, `{"prompt":[1,"a"]}`, `{"prompt":[1.5]}`, `{"prompt":"a","prompt":"b"}`,
		`{"prompt":"a","echo":true}`, `{"prompt":"a","best_of":2}`, `{"prompt":"a","suffix":"b"}`, `{"prompt":"a","n":0}`, `{"prompt":"a","stream":"yes"}`} {
		status, body := w.ask("/rollouts/r/v1/completions", bad)
		require.Equal(t, 400, status, "%s: %s", bad, body)
		requireError(t, "completions", body)
	}
	require.Zero(t, w.fake.Requests())
	status, body := w.ask("/rollouts/r/v1/completions", `{"prompt":"a","suffix":"","best_of":1,"echo":false}`)
	require.Equal(t, 200, status, body)
}

// TestTwoHarnesses: two harnesses that share a session by mistake each get replies to their own conversation,
// and each reply is a turn with its actual prompt.
func TestTwoHarnesses(t *testing.T) {
	w := newWorld(t, fakeengine.Options{Seed: 3})
	messages := map[string]string{"a": `{"role":"system","content":"You are a."}`, "b": `{"role":"system","content":"You are b."}`}
	for turn := range 3 {
		var wg sync.WaitGroup
		replies := map[string]string{}
		var mu sync.Mutex
		for name := range messages {
			messages[name] += fmt.Sprintf(`,{"role":"user","content":"%s %d"}`, name, turn)
			body := `{"model":"m","messages":[` + messages[name] + `]}`
			wg.Go(func() {
				status, text := w.ask("/rollouts/r/v1/chat/completions", body)
				mu.Lock()
				defer mu.Unlock()
				if status == 200 {
					var x struct {
						Choices []struct{ Message json.RawMessage }
					}
					if json.Unmarshal([]byte(text), &x) == nil {
						replies[name] = string(x.Choices[0].Message)
					}
				}
			})
		}
		wg.Wait()
		for name, reply := range replies {
			messages[name] += "," + reply
		}
		require.Len(t, replies, 2)
	}
	r := w.rollout("r")
	require.Len(t, r.Turns, 6)
	require.NoError(t, r.Validate())
	for i := range r.Turns {
		require.Empty(t, r.Turns[i].Incomplete)
		full, err := r.PromptTokens(nil, i)
		require.NoError(t, err)
		prompt := string(bytesOf(full))
		require.NotEqual(t, strings.Contains(prompt, "You are a."), strings.Contains(prompt, "You are b."), "of one conversation alone")
	}
}
