package tokenize_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// A template may write only a part of a text, or some of the calls. What is lost of a reply is
// counted; what the template trims or rewrites is not.
func TestPartsOfRepliesThatTheTemplateLeavesOut(t *testing.T) {
	kit.OneGoroutine(t)
	models := templateModels(t)
	one, two := call("call00001", `{"command": "ls"}`), call("call00002", "{}")
	for _, row := range []struct {
		template                  string
		message                   rollout.Message
		content, reasoning, calls int
	}{
		{"qwen3_5_nothink", reply("", "before<think>\nr\n</think>\n\nafter", one), 1, 0, 0},
		{"qwen3_5_nothink", reply("", "<think>\nr\n</think>\n\nafter", one), 0, 0, 0},
		{"qwen3_5_nothink", reply("", "  after \n", one, two), 0, 0, 0},
		{"qwen3_5_nothink", reply("\n so \n", "after"), 0, 0, 0},
		{"qwen3", reply("so", "one</think>two", one), 0, 0, 0},
		{"qwen3", reply("", "one</think>two</think>three", one), 1, 0, 0},
		{"gptoss", reply("so", "", one, two), 0, 0, 1},
		{"gptoss", reply("so", "", one), 0, 0, 0},
		{"llama3_1", reply("so", "I look.", one), 1, 1, 0},
		{"llama3_1", reply(" ", "", one), 0, 0, 0},
	} {
		r := &rollout.Rollout{ID: "a", Messages: append(say("user: hi"), row.message), Tools: bashTool}
		for _, mode := range []tokenize.Mode{tokenize.Whole, tokenize.Merged, tokenize.PerStep} {
			enc, err := tokenize.NewEncoder(models[row.template], tokenize.Options{Mode: mode})
			require.NoError(t, err)
			_, report, err := enc.Encode(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, []int{row.content, row.reasoning, row.calls}, []int{report.LostContent, report.LostReasoning, report.LostCalls}, "%s %s %+v", row.template, mode, row.message)
		}
	}
}

// A reply without reasoning after a prompt that opens it is counted, unless the reply closes it,
// was truncated inside it, or has recorded ids.
func TestReasoningLeftOpen(t *testing.T) {
	models := templateModels(t)
	call := reply("", "", call("call00001", "{}"))
	for _, c := range []struct {
		reason, template string
		reply            rollout.Message
		turn             rollout.Turn
		kwargs           string
		want             int
	}{
		{"no reasoning", "qwen3_5_think", reply("", "four"), rollout.Turn{}, "", 1},
		{"a call alone", "qwen3_5_think", call, rollout.Turn{}, "", 1},
		{"an opener in the content", "qwen3_5_think", reply("", "<think>four"), rollout.Turn{}, "", 1},
		{"reasoning", "qwen3_5_think", reply("three", "four"), rollout.Turn{}, "", 0},
		{"reasoning in the content", "qwen3_5_think", reply("", "three</think>four"), rollout.Turn{}, "", 0},
		{"cut", "qwen3_5_think", reply("", "four"), rollout.Turn{FinishReason: "length"}, "", 0},
		{"recorded ids", "qwen3_5_think", reply("", "four"), rollout.Turn{Output: []rollout.TokenID{5}}, "", 0},
		{"thinking off", "qwen3_5_think", reply("", "four"), rollout.Turn{}, "false", 0},
		{"a prompt that opens none", "qwen3", reply("", "four"), rollout.Turn{}, "", 0},
	} {
		r := &rollout.Rollout{ID: "a", Messages: append(say("user: one <think>"), c.reply)}
		c.turn.Message = 1
		r.Turns = []rollout.Turn{c.turn}
		if c.kwargs != "" {
			r.TemplateKwargs = map[string]json.RawMessage{"enable_thinking": json.RawMessage(c.kwargs)}
		}
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
			enc, err := tokenize.NewEncoder(models[c.template], tokenize.Options{Mode: mode})
			require.NoError(t, err)
			_, report, err := enc.Encode(t.Context(), r)
			require.NoError(t, err, c.reason)
			require.Equal(t, c.want, report.OpenReasoning, "%s, %s", c.reason, mode)
			report.Add(report)
			require.Equal(t, 2*c.want, report.OpenReasoning)
		}
	}
}
