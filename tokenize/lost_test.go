package tokenize_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// A template may write a part of a text, or some of the calls. What is lost of a reply
// is counted; what the template trims or writes anew is not.
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
			_, report, err := enc.EncodeReport(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, []int{row.content, row.reasoning, row.calls}, []int{report.LostContent, report.LostReasoning, report.LostCalls}, "%s %s %+v", row.template, mode, row.message)
		}
	}
}
