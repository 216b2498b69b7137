package proxy_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live"
)

// spy is a fake engine that keeps the last request.
func spy(t *testing.T, script ...fakeengine.Reply) (w *world, last func() map[string]any) {
	t.Helper()
	fake := fakeengine.New(fakeengine.Options{Script: script})
	var got map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		var raw json.RawMessage
		if json.NewDecoder(r.Body).Decode(&raw) == nil {
			b.Write(raw)
			got = nil
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Error(err)
			}
		}
		again := r.Clone(r.Context())
		again.Body = http.MaxBytesReader(nil, readCloser{strings.NewReader(b.String())}, 1<<30)
		fake.ServeHTTP(w, again)
	}))
	t.Cleanup(s.Close)
	return (&world{t: t, fake: fake}).on(s.URL, "vllm"), func() map[string]any { return got }
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// TestClaudeCodeShape: a request as Claude Code makes it in the middle of its work: blocks with cache marks,
// thinking with a signature, parallel calls, results with lists and errors, reminders beside them, tools of
// Anthropic's own, beta members.
func TestClaudeCodeShape(t *testing.T) {
	w, last := spy(t, toolReply, fakeengine.Reply{Content: "Done."})
	body := `{"model":"claude-x","max_tokens":32000,"temperature":1,"stream":true,
"system":[{"type":"text","text":"x-header: a"},{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],
"messages":[
 {"role":"user","content":[{"type":"text","text":"<system-reminder>date</system-reminder>"},{"type":"text","text":"Mend it.","cache_control":{"type":"ephemeral"}}]},
 {"role":"assistant","content":[{"type":"thinking","thinking":"Look first.","signature":"c2ln"},{"type":"text","text":"Reading é."},
  {"type":"tool_use","id":"t1","name":"run","input":{"command":"ls"}},{"type":"tool_use","id":"t2","name":"run","input":{"command":"cat \"a\""}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
  {"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"no such file"},{"type":"text","text":"<system-reminder>todo</system-reminder>"}]}],
"tools":[{"name":"run","description":"Runs.","input_schema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"command":{"type":"string"}}},"cache_control":{"type":"ephemeral"}},
 {"type":"web_search_20250305","name":"web_search","max_uses":8}],
"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"metadata":{"user_id":"u"},"thinking":{"type":"adaptive"},
"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"high"}}`
	status, answer := w.ask("/rollouts/cc/v1/messages?beta=true", body, "Anthropic-Beta", "claude-code-20250219", "Anthropic-Version", "2023-06-01")
	require.Equal(t, 200, status, answer)
	require.Contains(t, answer, "event: message_stop")
	var roles []string
	for _, m := range last()["messages"].([]any) {
		text, _ := at(m, "content").(string)
		roles = append(roles, at(m, "role").(string)+": "+text)
	}
	require.Equal(t, []string{"system: x-header: a\nYou are an agent.", "user: <system-reminder>date</system-reminder>\nMend it.", "assistant: Reading é.", "tool: a\nb", "tool: no such file", "user: <system-reminder>todo</system-reminder>"}, roles)
	require.Equal(t, "Look first.", at(last(), "messages", 2, "reasoning"))
	require.Equal(t, `{"command":"cat \"a\""}`, at(last(), "messages", 2, "tool_calls", 1, "function", "arguments"))
	require.Len(t, last()["tools"], 1)
	require.Equal(t, false, last()["parallel_tool_calls"])
	require.EqualValues(t, 32000, last()["max_tokens"])
	require.Nil(t, last()["context_management"])
	call := w.calls("cc")[0]
	require.Equal(t, live.StateOK, call.State, call.Why)
	for _, kept := range []string{"context_management", "output_config", "tools_left_out", "web_search_20250305"} {
		require.Contains(t, string(call.Settings), kept)
	}

	// Claude Code's title request: no tools, a schema, a prefilled beginning.
	_, answer = w.ask("/rollouts/cc/v1/messages", `{"model":"small","max_tokens":50,"system":"Title.","messages":[{"role":"user","content":"Mend"},{"role":"assistant","content":"{"}],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}`)
	require.Equal(t, "json_schema", at(last(), "response_format", "type"), answer)
	require.Len(t, w.calls("cc"), 2)
}

// TestCodexShape: a request as Codex makes it: developer messages, sealed reasoning, function and custom calls
// with their outputs, a tool with a grammar.
func TestCodexShape(t *testing.T) {
	patch := fakeengine.Reply{Reasoning: "Patch.", Calls: []fakeengine.Call{{Name: "apply_patch", Arguments: json.RawMessage(`{"input": "*** Begin\n+x\n"}`)}}}
	w, last := spy(t, patch, patch)
	one := `{"model":"gpt-x","instructions":"You are Codex.","stream":true,"store":false,"include":["reasoning.encrypted_content"],"tool_choice":"auto","parallel_tool_calls":false,
"reasoning":{"effort":"xhigh","summary":"auto"},"text":{"verbosity":"low"},"prompt_cache_key":"k","client_metadata":{"x":"y"},
"tools":[{"type":"function","name":"shell","strict":false,"parameters":{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}}}},
 {"type":"custom","name":"apply_patch","description":"Patches.","format":{"type":"grammar","syntax":"lark","definition":"start: x"}},{"type":"web_search"}],
"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Mend it."},{"type":"input_text","text":"Now."}]}`
	_, answer := w.ask("/rollouts/cx/v1/responses", one+"]}")
	names, data := events(t, answer)
	require.Equal(t, "response.completed", names[len(names)-1])
	items := at(data[len(data)-1], "response", "output").([]any)
	require.Len(t, items, 2)
	require.Equal(t, "reasoning", at(items[0], "type"))
	require.Equal(t, "custom_tool_call", at(items[1], "type"))
	require.Equal(t, "*** Begin\n+x\n", at(items[1], "input"))
	require.Contains(t, names, "response.custom_tool_call_input.delta")
	require.Equal(t, "high", last()["reasoning_effort"])
	require.Len(t, last()["tools"], 2)
	require.Contains(t, at(last(), "tools", 1, "function", "description"), "start: x")

	sealed := at(items[0], "encrypted_content").(string)
	call := at(items[1], "call_id").(string)
	_, answer = w.ask("/rollouts/cx/v1/responses", one+`,{"type":"reasoning","summary":[],"encrypted_content":"`+sealed+`"},
{"type":"custom_tool_call","call_id":"`+call+`","name":"apply_patch","input":"*** Begin\n+x\n"},{"type":"custom_tool_call_output","call_id":"`+call+`","output":"ok"},
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Now the test."}]},{"type":"function_call","call_id":"c2","name":"shell","arguments":"{\"command\":[\"ls\"]}"},{"type":"function_call","call_id":"c3","name":"shell","arguments":"{}"},
{"type":"function_call_output","call_id":"c2","output":"a"},{"type":"function_call_output","call_id":"c3","output":[{"type":"input_text","text":"b"}]}]}`)
	require.Contains(t, answer, "response.completed")
	var roles []string
	for _, m := range last()["messages"].([]any) {
		text, _ := at(m, "content").(string)
		calls, _ := at(m, "tool_calls").([]any)
		reasoning, _ := at(m, "reasoning").(string)
		roles = append(roles, at(m, "role").(string)+": "+reasoning+text+strings.Repeat("*", len(calls)))
	}
	require.Equal(t, []string{"system: You are Codex.", "developer: rules", "user: Mend it.\nNow.", "assistant: Patch.*", "tool: ok", "assistant: Now the test.**", "tool: a", "tool: b"}, roles)
	require.Equal(t, `{"input": "*** Begin\n+x\n"}`, at(last(), "messages", 3, "tool_calls", 0, "function", "arguments"), "as it was sampled")
	r := w.rollout("cx")
	require.NoError(t, r.Validate())
	for _, c := range w.calls("cx") {
		require.Equal(t, live.StateOK, c.State, c.Why)
	}
}

// TestCodexTools: tools of a namespace (an MCP server's) and tools within the input get one name for the engine
// and keep their own for Codex; the body arrives as zstd.
func TestCodexTools(t *testing.T) {
	event := fakeengine.Reply{Calls: []fakeengine.Call{{Name: "mcp__calendar__create_event", Arguments: json.RawMessage(`{"day": "Monday"}`)}, {Name: "close_agent", Arguments: json.RawMessage(`{}`)}}}
	for _, stream := range []bool{false, true} {
		w, last := spy(t, event, fakeengine.Reply{Content: "Done."})
		head := `{"model":"gpt-x","instructions":"You are Codex.","store":false,"tool_choice":"auto","parallel_tool_calls":true,"prompt_cache_key":"k","tools":[
{"type":"namespace","name":"mcp__calendar__","description":"Plan events.","tools":[{"type":"function","name":"create_event","strict":false,"parameters":{"type":"object","properties":{"day":{"type":"string"}}}},{"type":"local_shell"}]},
{"type":"tool_search","execution":"client"},{"type":"web_search"}],"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"close_agent","parameters":{"type":"object"}}]},
{"type":"message","role":"user","content":[{"type":"input_text","text":"Plan."}],"internal_chat_message_metadata_passthrough":{"turn_id":"1"}}`
		if stream {
			head = `{"stream":true,` + head[1:]
		}
		ask := func(body string) []any {
			t.Helper()
			status, answer := w.ask("/rollouts/cx/v1/responses", encoded(t, "zstd", body), "Content-Encoding", "zstd", "Session-Id", "codex")
			require.Equal(t, 200, status, answer)
			if !stream {
				return parsed(t, answer)["output"].([]any)
			}
			_, data := events(t, answer)
			return at(data[len(data)-1], "response", "output").([]any)
		}
		items := ask(head + "]}")
		require.Equal(t, []any{"function_call", "create_event", "mcp__calendar__", `{"day": "Monday"}`}, []any{at(items[0], "type"), at(items[0], "name"), at(items[0], "namespace"), at(items[0], "arguments")})
		require.Equal(t, []any{"close_agent", nil}, []any{at(items[1], "name"), at(items[1], "namespace")})
		require.Len(t, last()["tools"], 2)
		require.Equal(t, "mcp__calendar__create_event", at(last(), "tools", 0, "function", "name"))
		call := w.calls("cx")[0]
		require.Contains(t, string(call.Settings), `["local_shell","tool_search","web_search"]`)

		both, err := json.Marshal(items)
		require.NoError(t, err)
		items = ask(head + "," + strings.Trim(string(both), "[]") + `,{"type":"function_call_output","call_id":"` + at(items[0], "call_id").(string) + `","output":[{"type":"input_text","text":"ok"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},
{"type":"function_call_output","call_id":"` + at(items[1], "call_id").(string) + `","output":"closed"}]}`)
		require.Equal(t, "Done.", at(items[0], "content", 0, "text"))
		require.Equal(t, "mcp__calendar__create_event", at(last(), "messages", 2, "tool_calls", 0, "function", "name"), "as it was sampled")
		r := w.rollout("cx")
		require.NoError(t, r.Validate())
		require.Len(t, r.Turns, 2)
		for _, c := range w.calls("cx") {
			require.Equal(t, live.StateOK, c.State, c.Why)
		}
	}
}

// TestClaudeCodeLater: newer requests of Claude Code: instructions between messages, tools loaded on demand,
// hidden thinking, token counts, and a probe of the address.
func TestClaudeCodeLater(t *testing.T) {
	w, last := spy(t, fakeengine.Reply{Content: "Done."})
	body := `{"model":"claude-x","max_tokens":32000,"stream":true,"system":[{"type":"text","text":"x-billing: a"},{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral","ttl":"1h"}}],
"messages":[{"role":"user","content":"Mend it."},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"},{"type":"redacted_thinking","data":"b3RoZXI="},{"type":"tool_use","id":"t1","name":"ToolSearch","input":{"query":"x"},"caller":{"type":"direct"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"tool_reference","tool_name":"Later"}],"cache_control":{"type":"ephemeral"}},
 {"type":"document","source":{"type":"text","media_type":"text/plain","data":"notes"},"title":"n"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},
{"role":"system","content":"Use the tool."}],
"tools":[{"name":"Later","description":"","input_schema":{"type":"object","properties":{},"additionalProperties":false},"defer_loading":true,"eager_input_streaming":true}],
"thinking":{"type":"adaptive","display":"omitted"},"context_management":{"edits":[]},"output_config":{"effort":"high"},"diagnostics":{"previous_message_id":null},"speed":"fast"}`
	headers := []string{"Anthropic-Beta", "claude-code-20250219,mid-conversation-system-2026-04-07,effort-2025-11-24", "Anthropic-Version", "2023-06-01", "X-App", "cli", "X-Claude-Code-Session-Id", "u"}
	status, answer := w.ask("/rollouts/cc/v1/messages?beta=true", body, headers...)
	require.Equal(t, 200, status, answer)
	require.Contains(t, answer, "event: message_stop")
	var roles []string
	for _, m := range last()["messages"].([]any) {
		roles = append(roles, at(m, "role").(string))
	}
	require.Equal(t, []string{"system", "user", "assistant", "tool", "user", "system"}, roles)
	require.Equal(t, "image_url", at(last(), "messages", 4, "content", 1, "type"))
	require.Contains(t, string(w.calls("cc")[0].Settings), "diagnostics")
	status, answer = w.ask("/rollouts/cc/v1/messages/count_tokens?beta=true", strings.Replace(body, `"max_tokens":32000,"stream":true,`, "", 1), headers...)
	require.Equal(t, 200, status, answer)
	require.EqualValues(t, w.calls("cc")[0].PromptTokens, parsed(t, answer)["input_tokens"])
	for _, bad := range []string{`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, `{"type":"tool_use","id":"t"}`} { // blocks that no model here produced
		status, answer = w.ask("/rollouts/cc/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[`+bad+`]},{"role":"user","content":"y"}]}`)
		require.Equal(t, 400, status)
		requireError(t, "anthropic", answer)
	}
}

// TestRequestsForEngines: what the clients' APIs say in their own words reaches the engine in its.
func TestRequestsForEngines(t *testing.T) {
	const tools, named = `"tools":[{"type":"function","name":"run","input_schema":{"type":"object"},"parameters":null}],`, `{"function":{"name":"run"},"type":"function"}`
	for _, x := range [][3]string{ // the API, what the request says, what the engine is told
		{"messages", `"stop_sequences":["END"]`, `"stop":["END"]`},
		{"messages", `"thinking":{"type":"disabled"}`, `"chat_template_kwargs":{"enable_thinking":false}`},
		{"messages", tools + `"tool_choice":{"type":"any"}`, `"tool_choice":"required"`},
		{"messages", tools + `"tool_choice":{"type":"tool","name":"run"}`, `"tool_choice":` + named},
		{"messages", tools + `"tool_choice":{"type":"none"}`, `"tool_choice":"none"`},
		{"messages", tools + `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, `"parallel_tool_calls":false`},
		{"responses", tools + `"tool_choice":{"type":"function","name":"run"}`, `"tool_choice":` + named},
		{"responses", `"text":{"format":{"type":"json_object"}}`, `"response_format":{"type":"json_object"}`},
		{"responses", `"text":{"format":{"type":"json_schema","schema":{"type":"object"},"strict":true}}`, `"response_format":{"json_schema":{"name":"output","schema":{"type":"object"},"strict":true},"type":"json_schema"}`},
		{"responses", `"reasoning":{"effort":"minimal"}`, `"reasoning_effort":"low"`},
	} {
		w, last := spy(t, fakeengine.Reply{Content: "Done."})
		status, body := w.ask("/rollouts/r/v1/"+x[0], `{"model":"m","max_tokens":9,"input":[{"role":"user","content":"a"},{"type":"reasoning","content":[{"text":"because"}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}],
"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"because"},{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"document","source":{"type":"text","data":"c"}}]}],`+x[1]+`}`)
		require.Equal(t, 200, status, body)
		sent, err := json.Marshal(last())
		require.NoError(t, err)
		require.Contains(t, string(sent), x[2], x[1])
		for i, want := range [][2]string{{"a"}, {"b", "because"}, {"c"}} {
			m := &w.rollout("r").Messages[i]
			require.Equal(t, want, [2]string{m.Content, m.Reasoning}, x[0])
		}
	}
}
