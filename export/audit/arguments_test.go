package audit_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// Escaped arguments are reported; JSON text that legitimately occurs in a call or an answer is
// not.
func TestEscapedArguments(t *testing.T) {
	for _, c := range []struct {
		why, text string
		flags     rollout.Flag
		escaped   bool
	}{
		{"Qwen 2.5", "<tool_call>\n{\"name\": \"bash\", \"arguments\": \"{\\\"command\\\": \\\"ls\\\"}\"}\n</tool_call>", 0, true},
		{"Llama 3.1", `{"name": "bash", "parameters": "{\"command\": \"ls\"}"}`, 0, true},
		{"gpt-oss, between control tokens", `"{\"command\": \"ls\"}"`, 0, true},
		{"no arguments", `{"name": "bash", "arguments":"{}"}`, 0, true},
		{"Gemma 4", `call:bash{{"command": "ls"}}`, 0, true},
		{"flagged as a call", `{"arguments": "{\"a\": 1}"}`, rollout.FlagToolCall, true},
		{"flagged as content", `{"arguments": "{\"a\": 1}"}`, rollout.FlagContent, false},
		{"an object", `{"name": "bash", "arguments": {"command": "ls"}}`, 0, false},
		{"an argument that is JSON text", `{"name": "post", "arguments": {"body": "{\"a\": 1}"}}`, 0, false},
		{"a file that shows the wire", `{"name": "write", "arguments": {"text": "{\"arguments\": \"{\\\"a\\\": 1}\"}"}}`, 0, false},
		{"a string that is no object", `{"name": "bash", "arguments": "ls"}`, 0, false},
		{"a string that is cut", `{"name": "bash", "arguments": "{\"a`, 0, false},
		{"Gemma 4 as it writes", `call:bash{command:<|"|>{"a": 1}<|"|>}`, 0, false},
	} {
		f := facts()
		decode := f.Decode
		f.Decode = func(ids []rollout.TokenID) (string, error) {
			if len(ids) > 0 && ids[0] == 50 {
				return c.text, nil
			}
			return decode(ids)
		}
		row := map[string]any{"input_ids": []int{0, 2, 4, 50, 1}, "loss_mask": []int{0, 0, 0, 1, 1}}
		if c.flags != 0 {
			row["sources"], row["flags"] = []int{-1, -1, -1, 1, 1}, []int{0, 0, 0, int(c.flags | rollout.FlagSampled), int(rollout.FlagSampled)}
		}
		line, err := json.Marshal(row)
		require.NoError(t, err)
		rules := found(run(t, "rows.jsonl", line, f))
		require.Equal(t, c.escaped, slices.Contains(rules, "escaped-arguments"), "%s: %v", c.why, rules)
	}
}
