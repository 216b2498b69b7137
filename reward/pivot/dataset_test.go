package pivot_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/pivot"
	"github.com/turnpack/turnpack/rollout"
)

func TestTextCalls(t *testing.T) {
	for _, c := range []struct {
		text, before string
		protocol     string
		calls        []pivot.Call
	}{
		{"no call", "no call", "", nil},
		{"Look.\n<function=str_replace_editor>\n<parameter=command>view</parameter>\n<parameter=path>\n/a <b>\n</parameter>\n</function>", "Look.", "xml",
			[]pivot.Call{{Name: "str_replace_editor", Arguments: `{"command": "view", "path": "/a <b>"}`}}},
		{"<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call>\n<tool_call>\n{\"name\":\"f\",\"arguments\":\"{}\"}</tool_call>", "", "hermes",
			[]pivot.Call{{Name: "bash", Arguments: `{"command": "ls"}`}, {Name: "f", Arguments: "{}"}}},
		{"<tool_call>broken</tool_call>", "<tool_call>broken</tool_call>", "", nil},
		{"THOUGHT: x\n\n```bash\nls -la\necho\n```\n", "THOUGHT: x", "fence", []pivot.Call{{Name: "bash", Arguments: `{"command": "ls -la\necho"}`}}},
		{"two\n```bash\nls\n```\n```bash\nls\n```", "two\n```bash\nls\n```\n```bash\nls\n```", "", nil},
		{"```python\nx\n```", "```python\nx\n```", "", nil},
		{"go\n<execute_bash>\nls\n</execute_bash>", "go", "tag", []pivot.Call{{Name: "bash", Arguments: `{"command": "ls"}`}}},
		{"look\n```\nfind_file x\n```", "look", "block", []pivot.Call{{Name: "bash", Arguments: `{"command": "find_file x"}`}}},
		{"code\n```\nx\n```\nand more", "code\n```\nx\n```\nand more", "", nil},
	} {
		calls, before, protocol := pivot.TextCalls(c.text)
		for i := range c.calls {
			require.True(t, json.Valid([]byte(calls[i].Arguments)) || c.protocol == "", c.text)
			var want, got any
			_ = json.Unmarshal([]byte(calls[i].Arguments), &got)
			if json.Unmarshal([]byte(c.calls[i].Arguments), &want) != nil {
				want = map[string]any{"command": "ls -la\necho"} // the arguments above contain a raw line end
			}
			require.Equal(t, want, got, c.text)
			require.Equal(t, c.calls[i].Name, calls[i].Name)
		}
		require.Len(t, calls, len(c.calls), c.text)
		require.Equal(t, c.before, before)
		require.Equal(t, c.protocol, protocol, c.text)
	}
}

// A trajectory with calls in text and the same trajectory with native calls give the same steps, and
// the row of either scores the recorded step with 1.
func TestRowsOfTextAndNativeCalls(t *testing.T) {
	call := func(id, args string) []rollout.ToolCall {
		return []rollout.ToolCall{{ID: id, Name: "bash", Arguments: args, ArgumentsText: true}}
	}
	text := &rollout.Rollout{ID: "t", Instance: "a__b-1", Messages: []rollout.Message{
		{Role: rollout.RoleSystem, Content: "You are an agent."}, {Role: rollout.RoleUser, Content: "Mend it."},
		{Role: rollout.RoleAssistant, Content: "First.\n```bash\nls src\n```"}, {Role: rollout.RoleUser, Content: "a.py"},
		{Role: rollout.RoleAssistant, Content: "Hm, no call."}, {Role: rollout.RoleUser, Content: "One block, please."},
		{Role: rollout.RoleAssistant, Reasoning: "think", Content: "Then.\n```bash\nsed -i s/a/b/ src/a.py\n```"},
	}}
	native := &rollout.Rollout{ID: "n", Messages: []rollout.Message{
		text.Messages[0], text.Messages[1],
		{Role: rollout.RoleAssistant, Content: "First.", ToolCalls: call("call_2_0", `{"command": "ls src"}`)}, {Role: rollout.RoleTool, ToolCallID: "call_2_0", Content: "a.py"},
		text.Messages[4], text.Messages[5],
		{Role: rollout.RoleAssistant, Content: "Then.", ToolCalls: call("y", `{"command": "sed -i s/a/b/ src/a.py"}`)},
	}}
	steps := pivot.Candidates(text, false)
	twins := pivot.Candidates(native, false)
	require.Len(t, steps, 2)
	require.Len(t, twins, 2)
	for i := range steps {
		require.Equal(t, twins[i].Action, steps[i].Action)
		require.Equal(t, twins[i].Turn, steps[i].Turn)
		row, err := pivot.Data{}.Row(text, steps[i])
		require.NoError(t, err)
		twin, err := pivot.Data{}.Row(native, twins[i])
		require.NoError(t, err)
		require.Equal(t, twin.Request, row.Request)
		require.JSONEq(t, string(twin.ExpectedAction), string(row.ExpectedAction))
		require.Equal(t, "bash", row.Metadata.Category)
		require.NotEmpty(t, row.Request.Tools)
	}
	row, err := pivot.Data{}.Row(text, steps[1])
	require.NoError(t, err)
	written, err := json.Marshal(row.Request.Input)
	require.NoError(t, err)
	require.JSONEq(t, `[{"role":"system","content":"You are an agent."},{"role":"user","content":"Mend it."},{"role":"assistant","content":"First."},
{"type":"function_call","call_id":"call_2_0","name":"bash","arguments":"{\"command\": \"ls src\"}"},{"type":"function_call_output","call_id":"call_2_0","output":"a.py"},
{"role":"assistant","content":"Hm, no call."},{"role":"user","content":"One block, please."}]`, string(written))

	// The prompt stays as recorded, and the answer is text.
	kept, err := pivot.Data{Text: true}.Row(text, steps[1])
	require.NoError(t, err)
	require.True(t, kept.Metadata.TextPrompt)
	require.Empty(t, kept.Request.Tools)
	require.Equal(t, text.Messages[2].Content, *kept.Request.Input[2].Content)
	answer := pivot.WithTextCalls([]pivot.OutputItem{{Type: "message", Role: "assistant", Texts: []string{text.Messages[6].Content}}})
	line, err := json.Marshal(kept)
	require.NoError(t, err)
	var data pivot.Row
	require.NoError(t, json.Unmarshal(line, &data))
	score, err := pivot.SWE{}.VerifyRow(data, answer)
	require.NoError(t, err)
	require.Equal(t, 1.0, score.Reward)
	_, err = pivot.Data{}.Row(text, pivot.Candidate{Message: 99})
	require.Error(t, err)
}

// A tool that is null is no object, as is a number.
func TestNullToolIsAnError(t *testing.T) {
	for _, tool := range []string{"null", "3"} {
		r := &rollout.Rollout{ID: "r", Tools: []json.RawMessage{json.RawMessage(tool)}, Messages: []rollout.Message{
			{Role: rollout.RoleUser, Content: "go"},
			{Role: rollout.RoleAssistant, ToolCalls: []rollout.ToolCall{{ID: "c", Name: "bash", Arguments: "{}"}}},
		}}
		_, err := pivot.Data{}.Row(r, pivot.Candidates(r, false)[0])
		require.ErrorIs(t, err, rollout.KindFormat, tool)
		require.ErrorContains(t, err, "tools/0", tool)
	}
}

// NeMo-Gym (07d6b0d) refuses a request of which a tool lacks parameters or strict, or has members of its
// own, or of which reasoning has no id.
func TestRowsThatNeMoGymTakes(t *testing.T) {
	r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{
		{Role: rollout.RoleAssistant, Reasoning: "think", Content: "Well."},
		{Role: rollout.RoleAssistant, ToolCalls: []rollout.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}, {ID: "d", Name: "g", Arguments: "{}"}}},
	}}
	for _, tool := range []string{`{"type":"function","function":{"name":"f"}}`, `{"name":"g","input_schema":{"type":"object"},"cache_control":{}}`, `{"type":"web_search"}`} {
		r.Tools = append(r.Tools, json.RawMessage(tool))
	}
	row, err := pivot.Data{}.Row(r, pivot.Candidates(r, false)[0])
	require.NoError(t, err)
	got, err := json.Marshal(row.Request)
	require.NoError(t, err)
	require.JSONEq(t, `{"parallel_tool_calls":true,"input":[{"type":"reasoning","id":"rs_0","summary":[{"type":"summary_text","text":"think"}]},{"role":"assistant","content":"Well."}],"tools":[
{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false},
{"type":"function","name":"g","parameters":{"type":"object"},"strict":false},{"type":"web_search"}]}`, string(got))
	require.JSONEq(t, `{"type":"function_call_batch","calls":[{"name":"f","arguments":"{}"},{"name":"g","arguments":"{}"}]}`, string(row.ExpectedAction))
}

// A null among the recorded arguments does not hide the type of the others.
func TestNullArgumentKeepsTheTypeSeen(t *testing.T) {
	for _, arguments := range [][]string{{`{"n":1}`, `{"n":null}`}, {`{"n":null}`, `{"n":1}`}} {
		r := &rollout.Rollout{ID: "r"}
		for _, a := range arguments {
			r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleAssistant, ToolCalls: []rollout.ToolCall{{ID: "c", Name: "look", Arguments: a}}})
		}
		row, err := pivot.Data{}.Row(r, pivot.Candidates(r, false)[0])
		require.NoError(t, err)
		require.JSONEq(t, `{"type":"function","name":"look","parameters":{"type":"object","properties":{"n":{"type":"number"}}},"strict":false}`, string(row.Request.Tools[0]), arguments)
	}
}
