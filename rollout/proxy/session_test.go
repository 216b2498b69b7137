package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// TestSessions: a session is named by path, header or token, and by nothing else.
func TestSessions(t *testing.T) {
	q := requests["chat"]
	body := func(n int) string { return fmt.Sprintf(`%s,"user":"%d"}`, q.body, n) }
	w := newWorld(t, fakeengine.Options{})
	ask := func(want int, path string, headers ...string) string {
		t.Helper()
		status, answer := w.ask(path, body(w.fake.Requests()), headers...)
		require.Equal(t, want, status, answer)
		return answer
	}
	ask(200, "/rollouts/a%2Fb/v1/chat/completions")
	require.Len(t, w.calls("a/b"), 1)
	ask(200, "/v1/chat/completions", "X-Session-Id", "a/b")
	ask(200, "/v1/chat/completions", "Authorization", "Bearer "+w.handler.Token("a/b"))
	ask(200, "/v1/chat/completions", "X-Api-Key", w.handler.Token("a/b"), "Authorization", "Bearer other")
	require.Len(t, w.calls("a/b"), 4)
	ask(200, "/rollouts/child/v1/chat/completions", "X-Parent-Session-Id", "a/b")
	require.Len(t, w.calls("a/b"), 5)
	require.Equal(t, "a/b", w.session("child").Parent())

	ask(401, "/v1/chat/completions")
	ask(401, "/rollouts/a/v1/chat/completions", "X-Session-Id", "b")
	ask(401, "/rollouts/a/v1/chat/completions", "Authorization", "Bearer "+w.handler.Token("b"))
	ask(401, "/v1/chat/completions", "Authorization", "Bearer "+w.handler.Token("b")+"x")
	ask(401, "/v1/chat/completions", "Authorization", "Bearer tp-YQ.YQ")
	require.Contains(t, ask(401, "/rollouts/a/v1/chat/completions", "Authorization", "Bearer tp-YQ.YQ"), "not valid")
	ask(401, "/rollouts/"+strings.Repeat("x", 300)+"/v1/chat/completions")
	ask(401, "/rollouts/a%0Ab/v1/chat/completions")
	ask(404, "/rollouts//v1/chat/completions")
	ask(404, "/rollouts/a/http://other/v1/chat/completions")
	ask(401, "/rollouts/child2/v1/chat/completions", "X-Parent-Session-Id", "nobody")
	ask(409, "/rollouts/child/v1/chat/completions", "X-Parent-Session-Id", "c")

	_, err := w.session("a/b").End(t.Context(), live.Ending{})
	require.NoError(t, err)
	ask(409, "/rollouts/a%2Fb/v1/chat/completions")

	known, err := live.New(live.Options{})
	require.NoError(t, err)
	_, err = known.Begin(t.Context(), live.Start{ID: "here"})
	require.NoError(t, err)
	e, err := engine.New(engine.Options{URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	h, err := proxy.New(proxy.Options{Recorder: known, Engine: e, TokenOnly: true, Secret: []byte("s")})
	require.NoError(t, err)
	defer h.Close()
	for token, want := range map[string]int{"": 401, h.Token("here"): 502, h.Token("gone"): 401} {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(q.body+"}"))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Session-Id", "here")
		if want == 401 && token != "" {
			r.Header.Del("X-Session-Id")
		}
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		require.Equal(t, want, got.Code, got.Body)
	}
}

// TestSecrets: the keys of clients and of the engine appear nowhere: not in journal, answers or errors;
// clients' headers do not reach the engine, and no redirect is followed.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	journal, err := live.OpenJournal(dir, live.JournalOptions{})
	require.NoError(t, err)
	recorder, err := live.New(live.Options{Journal: journal})
	require.NoError(t, err)
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	fake := fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{toolReply}})
	var mode atomic.Value
	mode.Store("ok")
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all bytes.Buffer
		if err := r.Header.Write(&all); err != nil || strings.Contains(all.String(), "client-secret") {
			t.Error("a client's header reached the engine")
		}
		if r.Header.Get("Authorization") != "Bearer engine-secret-1" {
			t.Error("the engine's key is not sent")
		}
		switch mode.Load() {
		case "echo":
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, r.Header.Get("Authorization"))
		case "redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		default:
			fake.ServeHTTP(w, r)
		}
	}))
	defer upstream.Close()
	w := (&world{t: t, fake: fake}).on(upstream.URL, "vllm", func(o *proxy.Options) { o.Recorder = recorder })
	said := ""
	for name, q := range requests {
		for _, m := range []string{"ok", "echo", "redirect"} {
			mode.Store(m)
			status, body := w.ask("/rollouts/"+name+m+q.path+"?key=client-secret-4", q.body+`,"stream":true,"metadata":{"x-api-key":"client-secret-5"}}`, "X-Goog-Api-Key", "client-secret-6", "Cookie", "client-secret-7")
			require.Equal(t, map[string]int{"ok": 200, "echo": 400, "redirect": 502}[m], status, body)
			said += body
		}
	}
	require.Zero(t, elsewhere.Load())
	require.NoError(t, journal.Close())
	status, err := json.Marshal([]any{w.handler.Stats(), w.engine.Status()})
	require.NoError(t, err)
	said += string(status)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		said += string(b)
	}
	require.NotContains(t, strings.ReplaceAll(said, `"x-api-key":"client-secret-5"`, ""), "engine-secret")
	for _, n := range []string{"2", "3", "4", "6", "7"} {
		require.NotContains(t, said, "client-secret-"+n)
	}
}

// TestResponsesGoOn: previous_response_id is resolved from the record: the conversation without the
// instructions of the previous call, even with different tools.
func TestResponsesGoOn(t *testing.T) {
	w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply, {Content: "Two."}, {Content: "Three."}}})
	ask := func(body string) map[string]any {
		t.Helper()
		status, answer := w.ask("/rollouts/r/v1/responses", body)
		require.Equal(t, 200, status, answer)
		return parsed(t, answer)
	}
	one := ask(requests["responses"].body + "}")
	call := at(one, "output", 2, "call_id").(string)
	two := ask(fmt.Sprintf(`{"model":"m","instructions":"Be long.","previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"a.txt"}]}`, one["id"], call))
	require.Equal(t, "Two.", at(two, "output", 0, "content", 0, "text"))
	require.Equal(t, one["id"], two["previous_response_id"])
	three := ask(fmt.Sprintf(`{"model":"m","previous_response_id":%q,"input":"And?"}`, two["id"]))
	require.Equal(t, "Three.", at(three, "output", 0, "content", 0, "text"))
	calls := w.calls("r")
	_, sent, reply, err := w.session("r").Conversation(calls[2].ID)
	require.NoError(t, err)
	var got []string
	for _, m := range sent {
		got = append(got, string(m.Role)+": "+m.Content)
	}
	require.Equal(t, []string{"user: What is here?", "assistant: Reading é.", "tool: a.txt", "assistant: Two.", "user: And?"}, got)
	require.Equal(t, "Look first.", sent[1].Reasoning)
	require.Equal(t, "Three.", reply.Content)
	status, body := w.ask("/rollouts/r/v1/responses", `{"model":"m","previous_response_id":"resp_none","input":"And?"}`)
	require.Equal(t, 400, status)
	require.Contains(t, body, "previous_response_not_found")
	status, _ = w.ask("/rollouts/other/v1/responses", fmt.Sprintf(`{"model":"m","previous_response_id":%q,"input":"And?"}`, two["id"]))
	require.Equal(t, 400, status, "a reply of another session is not told")
}

// TestSeveralReplies: each of n replies is a call, streamed and not.
func TestSeveralReplies(t *testing.T) {
	for _, stream := range []string{"", `,"stream":true,"stream_options":{"include_usage":true}`} {
		w := newWorld(t, fakeengine.Options{Seed: 5})
		q := requests["chat"]
		_, body := w.ask("/rollouts/r"+q.path, q.body+stream+`,"n":3}`)
		calls := w.calls("r")
		require.Len(t, calls, 3)
		texts := map[string]bool{}
		total := 0
		for _, c := range calls {
			require.Equal(t, live.StateOK, c.State)
			_, _, reply, err := w.session("r").Conversation(c.ID)
			require.NoError(t, err)
			texts[reply.Content] = true
			total += c.OutputTokens
		}
		require.Len(t, texts, 3)
		usage := at(parsed(t, strings.Split(strings.TrimPrefix(body, "data: "), "\ndata:")[0]), "usage")
		if stream != "" {
			_, data := events(t, body)
			usage = at(data[len(data)-2], "usage")
		}
		require.EqualValues(t, total, at(usage, "completion_tokens"))
		_, again := w.ask("/rollouts/r"+q.path, q.body+stream+`,"n":3}`)
		require.Equal(t, 1, w.fake.Requests())
		if stream == "" {
			for i := range 3 {
				require.Equal(t, at(parsed(t, body), "choices", i, "message", "content"), at(parsed(t, again), "choices", i, "message", "content"))
			}
		}
	}
	w := newWorld(t, fakeengine.Options{Seed: 5, Faults: fakeengine.Faults{Count: 1}})
	q := requests["chat"]
	w.ask("/rollouts/r"+q.path, q.body+`,"n":2}`)
	for _, c := range w.calls("r") {
		require.Equal(t, live.StateIncomplete, c.State)
	}
}

// TestSeveralRepliesOfSGLang: /generate counts the tokens of each choice with its end; the proxy adds them up. The
// lists of an event that waited for another choice may be ahead of its count and its text.
func TestSeveralRepliesOfSGLang(t *testing.T) {
	one := func(i, n int, ids, finish string) string {
		return fmt.Sprintf(`{"index":%d,"text":"x","output_ids":%s,"meta_info":{"id":"a%d","finish_reason":%s,"prompt_tokens":3,"cached_tokens":1,"completion_tokens":%d,"output_token_logprobs":[[-0.5,13,null]%s]}}`,
			i, ids, i, finish, n, strings.Repeat(`,[-0.25,14,null]`, n-1))
	}
	stop := `{"type":"stop","matched":2}`
	for body, reply := range map[string]string{
		`"n":2`: "[" + one(0, 2, "[13,14]", stop) + "," + one(1, 3, "[13,14,14]", stop) + "]",
		`"n":2,"stream":true,"stream_options":{"include_usage":true}`: "data: " + strings.Join([]string{one(1, 1, "[13]", "null"), one(0, 1, "[13]", "null"),
			strings.Replace(one(1, 3, "[13,14,14]", "null"), `"completion_tokens":3`, `"completion_tokens":2`, 1), one(0, 2, "[13,14]", stop), one(1, 3, "[13,14,14]", stop), "[DONE]"}, "\n\ndata: ") + "\n\n",
	} {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(reply, "data") {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			fmt.Fprint(w, reply)
		}))
		defer upstream.Close()
		w := (&world{t: t}).on(upstream.URL, "sglang")
		_, text := w.ask("/rollouts/r/v1/completions", `{"model":"m","prompt":[1,2,3],`+body+`}`)
		total := 0
		for _, c := range w.calls("r") {
			require.Equal(t, live.StateOK, c.State, "%s: %s", body, c.Why)
			total += c.OutputTokens
		}
		require.Equal(t, 5, total)
		for _, turn := range w.rollout("r").Turns {
			require.Equal(t, []rollout.TokenID{13, 14, 14}[:len(turn.Output)], turn.Output)
		}
		require.Contains(t, text, `"usage":{"prompt_tokens":3,"completion_tokens":5,`)
	}
}

// TestPassedThrough: a chat client gets the engine's own bytes without the parts that it did not ask for.
func TestPassedThrough(t *testing.T) {
	fake := fakeengine.New(fakeengine.Options{Script: []fakeengine.Reply{toolReply}})
	direct := httptest.NewServer(fake)
	defer direct.Close()
	w := (&world{t: t, fake: fake}).on(direct.URL, "vllm")
	own := regexp.MustCompile(`"id":"chatcmpl-[0-9a-f]{16}"`) // of the reply; it counts requests
	id := func(s string) string {
		require.Regexp(t, own, s)
		return own.ReplaceAllString(s, "ID")
	}
	for _, more := range []string{"", `,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`, `,"logprobs":true,"return_token_ids":true`, `,"stream":true,"logprobs":true,"return_token_ids":true`} {
		body := requests["chat"].body + more + "}"
		res, err := http.Post(direct.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		var want bytes.Buffer
		_, err = want.ReadFrom(res.Body)
		require.NoError(t, err)
		res.Body.Close()
		_, got := w.ask("/rollouts/r/v1/chat/completions", body)
		require.Equal(t, id(want.String()), id(got), more)
	}
}

// parser parses the fake engine's replies.
type parser struct{ text string }

func (p *parser) Push(text string) engine.Choice { p.text += text; return engine.Choice{} }

func (p *parser) Close() engine.Choice {
	var out engine.Choice
	rest := p.text
	if a, b, ok := strings.Cut(rest, "</think>\n\n"); ok {
		out.Reasoning, rest = strings.Trim(strings.TrimPrefix(a, "<think>"), "\n"), b
	}
	parts := strings.Split(rest, "<tool_call>\n")
	out.Text = strings.TrimSpace(parts[0])
	for i, s := range parts[1:] {
		var c struct {
			Name      string
			Arguments json.RawMessage
		}
		if json.Unmarshal([]byte(strings.Split(s, "\n</tool_call>")[0]), &c) == nil {
			out.Calls = append(out.Calls, engine.CallDelta{Index: i, Name: c.Name, Arguments: string(c.Arguments)})
		}
	}
	return out
}

// TestTokenIn: with Prompts the engine gets ids, and every dialect is served from its text; calls that need the
// engine's own chat are sent there.
func TestTokenIn(t *testing.T) {
	for name, q := range requests {
		for _, stream := range []string{"", `,"stream":true`} {
			w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}}, tokenIn)
			status, body := w.ask("/rollouts/r"+q.path, q.body+stream+"}")
			require.Equal(t, 200, status, body)
			text, reasoning, calls := told(t, name, stream != "", body)
			require.Equal(t, "Reading é.", text)
			require.Equal(t, "Look first.", reasoning)
			require.Equal(t, []string{`run {"command": "ls"}`, `run {"command": "cat \"a\""}`}, calls)
			turn := &w.rollout("r").Turns[0]
			require.Equal(t, sampled(toolText), turn.Output)
			require.Equal(t, "<system>Be brief.<user>What is here?<assistant>", string(bytesOf(turn.Prompt.Add)))
			require.Equal(t, live.StateOK, w.calls("r")[0].State)
		}
	}
	w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}}, tokenIn)
	_, body := w.ask("/rollouts/r/v1/messages/count_tokens", requests["anthropic"].body+"}")
	require.EqualValues(t, len("<system>Be brief.<user>What is here?<assistant>"), parsed(t, body)["input_tokens"])
	_, body = w.ask("/rollouts/r/v1/chat/completions", requests["chat"].body+`,"tool_choice":"required"}`)
	require.Equal(t, "tool_calls", at(parsed(t, body), "choices", 0, "finish_reason"))
	require.Contains(t, string(bytesOf(w.rollout("r").Turns[0].Prompt.Add)), "<tools>", "the engine rendered it")
}

func bytesOf(ids []rollout.TokenID) []byte {
	var out []byte
	for _, id := range ids {
		out = append(out, byte(id))
	}
	return out
}

// TestSGLang: /generate with both kinds of stream, and chat with meta_info.
func TestSGLang(t *testing.T) {
	for _, stream := range []string{sglangCumulative, sglangIncremental} {
		var asked map[string]any
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "/generate", r.URL.Path)
			require.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, stream)
		}))
		defer upstream.Close()
		w := (&world{t: t}).on(upstream.URL, "sglang")
		_, body := w.ask("/rollouts/r/v1/completions", `{"model":"m","prompt":[1,2,3],"stream":true,"max_tokens":9,"temperature":0.5,"stop":["."],"seed":3}`)
		_, data := events(t, body)
		text := ""
		for _, d := range data {
			s, _ := at(d, "choices", 0, "text").(string)
			text += s
		}
		require.Equal(t, "Hi you.", text)
		turn := &w.rollout("r").Turns[0]
		require.Equal(t, []rollout.TokenID{13, 14, 15, 16, 2}, turn.Output)
		require.Equal(t, []float32{-0.5, -0.25, -0.125, -1, 0}, turn.Logprobs)
		require.Equal(t, []rollout.VersionRun{{From: 0, Version: 4}, {From: 3, Version: 5}}, turn.Versions)
		require.Equal(t, live.StateOK, w.calls("r")[0].State)
		require.Equal(t, map[string]any{"input_ids": []any{1.0, 2.0, 3.0}, "return_logprob": true, "logprob_start_len": -1.0, "stream": true,
			"sampling_params": map[string]any{"max_new_tokens": 9.0, "temperature": 0.5, "stop": []any{"."}, "sampling_seed": 3.0}}, asked)

		// A client that asks for ids and log probabilities gets them in its API's format.
		const more = `"stream":true,"return_token_ids":true,"logprobs":true,`
		_, body = w.ask("/rollouts/ids/v1/completions", `{`+more+`"prompt":[1,2,3]}`)
		require.Contains(t, body, `"logprobs":{"text_offset":[],"token_logprobs":[-0.5],"tokens":["token_id:13"],"top_logprobs":null},"finish_reason":null,"token_ids":[13]`)
		w = (&world{t: t}).on(upstream.URL, "sglang", tokenIn)
		_, body = w.ask("/rollouts/ids/v1/chat/completions", `{`+more+`"messages":[{"role":"user","content":[{"type":"text","text":"a"},"b"]}]}`)
		require.Contains(t, body, `"logprobs":{"content":[{"token":"token_id:13","logprob":-0.5,"bytes":null,"top_logprobs":[]}]},"finish_reason":null,"token_ids":[13]`)
		require.Equal(t, "<user>ab<assistant>", string(bytesOf(w.rollout("ids").Turns[0].Prompt.Add)))
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		require.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		require.Nil(t, asked["stream"])
		require.Equal(t, true, asked["return_meta_info"])
		fmt.Fprint(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","reasoning_content":"hm","tool_calls":null},"logprobs":{"content":[{"token":"Hi","logprob":-0.5}]},"finish_reason":"stop","matched_stop":2,"prompt_token_ids":[1,2],"meta_info":{"weight_version":"3","completion_tokens":2,"output_token_logprobs":[[-0.5,7,"Hi"],[-0.25,2,null]]}}],"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}}`)
	}))
	defer upstream.Close()
	w := (&world{t: t}).on(upstream.URL, "sglang")
	for i, stream := range []string{"", `,"stream":true`} {
		id := fmt.Sprint("r", i)
		_, body := w.ask("/rollouts/"+id+"/v1/messages", requests["anthropic"].body+stream+"}")
		require.Contains(t, body, "hm")
		_, body = w.ask("/rollouts/"+id+"/v1/chat/completions", requests["chat"].body+stream+"}")
		require.NotContains(t, body, "meta_info")
		for _, c := range w.calls(id) {
			require.Equal(t, live.StateOK, c.State, c.Why)
			require.EqualValues(t, 3, *c.Version)
			require.Equal(t, 2, c.OutputTokens)
		}
	}
}

// TestKeepAlive: a waiting client gets pings in its dialect, before the first event and after it.
func TestKeepAlive(t *testing.T) {
	for name, q := range requests {
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "ok"}}, Faults: fakeengine.Faults{Delay: 30 * time.Millisecond}, Event: 2}, func(o *proxy.Options) { o.KeepAlive = 5 * time.Millisecond })
		status, body := w.ask("/rollouts/r"+q.path, q.body+`,"stream":true}`)
		require.Equal(t, 200, status)
		mark := ": keep-alive\n"
		if name == "anthropic" {
			mark = "event: ping\n"
		}
		require.Greater(t, strings.Count(body, mark), 2, name)
		require.Contains(t, body, "ok")
	}
}

// TestNothingIsLeft: a closed handler leaves no goroutine, whatever its clients and its engine did.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		fake := fakeengine.New(fakeengine.Options{Seed: 2, Faults: fakeengine.Faults{Delay: 20 * time.Millisecond}})
		upstream := httptest.NewServer(fake)
		defer upstream.Close()
		e, err := engine.New(engine.Options{URL: upstream.URL})
		require.NoError(t, err)
		defer e.Close()
		recorder, err := live.New(live.Options{})
		require.NoError(t, err)
		h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: e, Open: recorder.Begin})
		require.NoError(t, err)
		server := httptest.NewServer(h)
		defer server.Close()
		client := server.Client()
		for name, q := range requests {
			ctx, cancel := context.WithCancel(t.Context())
			go func(asked int) { // the client leaves while the engine answers
				for fake.Requests() == asked {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}(fake.Requests())
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/rollouts/"+name+q.path, strings.NewReader(q.body+`,"stream":true}`))
			require.NoError(t, err)
			if res, err := client.Do(r); err == nil {
				res.Body.Close()
			}
			cancel()
		}
		h.Close()
		for name := range requests {
			s, ok := recorder.Session(name)
			require.True(t, ok)
			require.Equal(t, live.StateAborted, madeCalls(t, s)[0].State)
		}
		r := httptest.NewRequest(http.MethodPost, "/rollouts/x/v1/chat/completions", strings.NewReader(requests["chat"].body+"}"))
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		require.Equal(t, 503, got.Code)
	}()
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			all := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, all[:runtime.Stack(all, true)])
		}
	}
}
