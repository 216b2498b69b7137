package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// world is a proxy between a client and a fake engine.
type world struct {
	t        *testing.T
	fake     *fakeengine.Server
	recorder *live.Recorder
	handler  *proxy.Handler
	engine   engine.Engine
	url      string
}

func newWorld(t *testing.T, f fakeengine.Options, set ...func(*proxy.Options)) *world {
	t.Helper()
	w := &world{t: t, fake: fakeengine.New(f)}
	upstream := httptest.NewServer(w.fake)
	t.Cleanup(upstream.Close)
	return w.on(upstream.URL, "vllm", set...)
}

func (w *world) on(url string, kind string, set ...func(*proxy.Options)) *world {
	t := w.t
	t.Helper()
	e, err := engine.New(engine.Options{URL: url, Kind: kind, Key: "engine-secret-1"})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	o := proxy.Options{Engine: e}
	for _, f := range set {
		f(&o)
	}
	if o.Recorder == nil {
		o.Recorder, err = live.New(live.Options{Vocab: 1000})
		require.NoError(t, err)
	}
	if o.Open == nil {
		o.Open = o.Recorder.Begin
	}
	w.recorder, w.engine = o.Recorder, o.Engine
	w.handler, err = proxy.New(o)
	require.NoError(t, err)
	server := httptest.NewServer(w.handler)
	t.Cleanup(func() { server.Close(); w.handler.Close() })
	w.url = server.URL
	return w
}

// ask posts a body and returns the status and the whole answer.
func (w *world) ask(path, body string, headers ...string) (int, string) {
	w.t.Helper()
	res := w.send(context.Background(), path, body, headers...)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return res.StatusCode, string(b)
}

func (w *world) send(ctx context.Context, path, body string, headers ...string) *http.Response {
	w.t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	require.NoError(w.t, err)
	r.Header.Set("Authorization", "Bearer client-secret-2")
	r.Header.Set("X-Api-Key", "client-secret-3")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	return res
}

// events returns the names and data of the events of a stream.
func events(t *testing.T, stream string) (names []string, data []map[string]any) {
	t.Helper()
	s := bufio.NewScanner(strings.NewReader(stream))
	s.Buffer(nil, 16<<20)
	name := ""
	for s.Scan() {
		line := s.Text()
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = n
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			if d == "[DONE]" {
				names = append(names, "[DONE]")
				data = append(data, nil)
				continue
			}
			var x map[string]any
			require.NoError(t, json.Unmarshal([]byte(d), &x), d)
			names, data, name = append(names, name), append(data, x), ""
		}
	}
	return names, data
}

func (w *world) session(id string) *live.Session {
	w.t.Helper()
	s, ok := w.recorder.Session(id)
	require.True(w.t, ok, "session %s", id)
	return s
}

// madeCalls returns the calls of a session.
func madeCalls(t testing.TB, s *live.Session) []live.CallInfo {
	t.Helper()
	calls, err := s.Calls()
	require.NoError(t, err)
	return calls
}

func (w *world) calls(id string) []live.CallInfo { return madeCalls(w.t, w.session(id)) }

func (w *world) rollout(id string) *rollout.Rollout {
	w.t.Helper()
	r, err := w.session(id).Rollout()
	require.NoError(w.t, err)
	return r
}

// at returns the value at a path in a decoded JSON value.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func parsed(t *testing.T, body string) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	require.NoError(t, d.Decode(&v), body)
	return v
}

// sampled returns the ids that the fake engine samples for a text.
func sampled(text string) []rollout.TokenID {
	out := make([]rollout.TokenID, 0, len(text)+1)
	for i := range len(text) {
		out = append(out, rollout.TokenID(text[i]))
	}
	return append(out, 256)
}

var toolReply = fakeengine.Reply{Reasoning: "Look first.", Content: "Reading é.", Calls: []fakeengine.Call{
	{Name: "run", Arguments: json.RawMessage(`{"command": "ls"}`)}, {Name: "run", Arguments: json.RawMessage(`{"command": "cat \"a\""}`)},
}}

const toolText = "<think>\nLook first.\n</think>\n\nReading é.\n<tool_call>\n{\"name\": \"run\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"run\", \"arguments\": {\"command\": \"cat \\\"a\\\"\"}}\n</tool_call>"

const chatTools = `"tools":[{"type":"function","function":{"name":"run","description":"Runs a command.","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}]`

// requests holds the same call in each dialect.
var requests = map[string]struct{ path, body string }{
	"chat":      {"/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is here?"}],` + chatTools + `,"temperature":0.5,"seed":7`},
	"responses": {"/v1/responses", `{"model":"m","instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is here?"}]}],"tools":[{"type":"function","name":"run","description":"Runs a command.","strict":false,"parameters":{"type":"object","properties":{"command":{"type":"string"}}}}],"temperature":0.5,"store":false,"include":["reasoning.encrypted_content"]`},
	"anthropic": {"/v1/messages", `{"model":"m","max_tokens":4096,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"What is here?"}]}],"tools":[{"name":"run","description":"Runs a command.","input_schema":{"type":"object","properties":{"command":{"type":"string"}}}}],"temperature":0.5,"thinking":{"type":"enabled","budget_tokens":1024}`},
}

// TestDialects: the same call in each dialect, streamed and not, is recorded identically, and its client
// receives the same reply.
func TestDialects(t *testing.T) {
	for name, q := range requests {
		for _, stream := range []string{"", `,"stream":true`} {
			t.Run(name+stream, func(t *testing.T) {
				w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}})
				status, body := w.ask("/rollouts/r-1"+q.path, q.body+stream+"}")
				require.Equal(t, 200, status, body)
				r := w.rollout("r-1")
				require.Len(t, r.Turns, 1)
				turn := &r.Turns[0]
				require.Equal(t, sampled(toolText), turn.Output)
				require.Len(t, turn.Logprobs, len(turn.Output))
				require.Equal(t, "", turn.Incomplete)
				require.Equal(t, "tool_calls", turn.FinishReason)
				require.InDelta(t, 0.5, *turn.Sampling.Temperature, 0)
				require.Len(t, r.Tools, 1)
				m := r.Messages[turn.Message]
				require.Equal(t, "Reading é.", m.Content)
				require.Equal(t, "Look first.", m.Reasoning)
				require.Len(t, m.ToolCalls, 2)
				require.Equal(t, `{"command": "ls"}`, m.ToolCalls[0].Arguments)
				require.Equal(t, `{"command": "cat \"a\""}`, m.ToolCalls[1].Arguments)
				require.Equal(t, live.StateOK, w.calls("r-1")[0].State)
				require.Equal(t, name, w.calls("r-1")[0].Dialect)
				require.NoError(t, r.Validate())

				text, reasoning, calls := told(t, name, stream != "", body)
				require.Equal(t, "Reading é.", text)
				require.Equal(t, "Look first.", reasoning)
				require.Equal(t, []string{`run {"command": "ls"}`, `run {"command": "cat \"a\""}`}, calls)
				for _, secret := range []string{"token_ids", "client-secret", "engine-secret"} {
					require.NotContains(t, body, secret)
				}
			})
		}
	}
}

// told parses a reply as a client of a dialect does.
func told(t *testing.T, dialect string, stream bool, body string) (text, reasoning string, calls []string) {
	t.Helper()
	str := func(v any) string { s, _ := v.(string); return s }
	if !stream {
		v := parsed(t, body)
		switch dialect {
		case "chat":
			m := at(v, "choices", 0, "message")
			text, reasoning = str(at(m, "content")), str(at(m, "reasoning"))+str(at(m, "reasoning_content"))
			for i := range at(m, "tool_calls").([]any) {
				calls = append(calls, str(at(m, "tool_calls", i, "function", "name"))+" "+str(at(m, "tool_calls", i, "function", "arguments")))
			}
			require.Equal(t, "tool_calls", at(v, "choices", 0, "finish_reason"))
		case "responses":
			require.Equal(t, "completed", v["status"])
			for _, x := range v["output"].([]any) {
				switch at(x, "type") {
				case "message":
					text += str(at(x, "content", 0, "text"))
				case "reasoning":
					reasoning += str(at(x, "content", 0, "text"))
				case "function_call":
					calls = append(calls, str(at(x, "name"))+" "+str(at(x, "arguments")))
				}
			}
		case "anthropic":
			require.Equal(t, "tool_use", v["stop_reason"])
			for _, x := range v["content"].([]any) {
				text += str(at(x, "text"))
				reasoning += str(at(x, "thinking"))
				if at(x, "type") == "tool_use" {
					require.NotEmpty(t, at(x, "id"))
					var b bytes.Buffer
					e := json.NewEncoder(&b)
					e.SetEscapeHTML(false)
					require.NoError(t, e.Encode(at(x, "input")))
					calls = append(calls, str(at(x, "name"))+" "+strings.Replace(strings.TrimSpace(b.String()), ":", ": ", 1))
				}
			}
		}
		return text, reasoning, calls
	}
	names, data := events(t, body)
	add := func(i int, s string) {
		for len(calls) <= i {
			calls = append(calls, "")
		}
		calls[i] += s
	}
	blocks := map[int]int{}
	for i, v := range data {
		switch dialect {
		case "chat":
			d := at(v, "choices", 0, "delta")
			text += str(at(d, "content"))
			reasoning += str(at(d, "reasoning")) + str(at(d, "reasoning_content"))
			list, _ := at(d, "tool_calls").([]any)
			for _, x := range list {
				k := int(at(x, "index").(float64))
				if n := str(at(x, "function", "name")); n != "" {
					add(k, n+" ")
				}
				add(k, str(at(x, "function", "arguments")))
			}
		case "responses":
			require.EqualValues(t, i, v["sequence_number"])
			require.Equal(t, names[i], v["type"])
			switch names[i] {
			case "response.output_text.delta":
				text += str(v["delta"])
			case "response.reasoning_text.delta":
				reasoning += str(v["delta"])
			case "response.output_item.added":
				if at(v, "item", "type") == "function_call" {
					calls = append(calls, str(at(v, "item", "name"))+" ")
				}
			case "response.function_call_arguments.delta":
				calls[len(calls)-1] += str(v["delta"])
			}
		case "anthropic":
			require.Equal(t, names[i], v["type"])
			k := -1
			if n, ok := v["index"].(float64); ok {
				k = int(n)
			}
			switch names[i] {
			case "content_block_start":
				if at(v, "content_block", "type") == "tool_use" {
					blocks[k] = len(calls)
					calls = append(calls, str(at(v, "content_block", "name"))+" ")
				}
			case "content_block_delta":
				text += str(at(v, "delta", "text"))
				reasoning += str(at(v, "delta", "thinking"))
				if at(v, "delta", "type") == "input_json_delta" {
					calls[blocks[k]] += str(at(v, "delta", "partial_json"))
				}
			}
		}
	}
	last := map[string]string{"chat": "[DONE]", "responses": "response.completed", "anthropic": "message_stop"}[dialect]
	require.Equal(t, last, names[len(names)-1])
	return text, reasoning, calls
}

// Each fault of the options is reported under the field that has it.
func TestFaultsOfOptions(t *testing.T) {
	e, err := engine.New(engine.Options{URL: "http://localhost"})
	require.NoError(t, err)
	recorder, err := live.New(live.Options{})
	require.NoError(t, err)
	for field, o := range map[string]proxy.Options{"KeepAlive": {KeepAlive: -1}, "MaxBody": {MaxBody: -1}, "MaxCalls": {MaxCalls: -1}} {
		o.Recorder, o.Engine = recorder, e
		_, err := proxy.New(o)
		fault, ok := errors.AsType[*rollout.Error](err)
		require.True(t, ok, field)
		require.Equal(t, field, fault.Where.Field)
		require.NotContains(t, err.Error(), "\n", "one fault")
	}
}
