package tokenize_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Some templates end a reply only if the conversation continues. The policy sampled the stop token
// there as after the last reply, with or without a tool call.
func TestStopThatFollowsLater(t *testing.T) {
	const template = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}[CALL]{{ c.function.arguments }}[/CALL]{% endfor %}STOP{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`
	call := []rollout.ToolCall{{ID: "c1", Name: "ls", Arguments: `{"a": 1}`}}
	for _, c := range []struct{ stop, tail, reason string }{
		{"{% if not loop.last %}<|im_end|>\n{% endif %}", "<|im_end|>", "before the next message"},
		{"{% if not loop.last or add_generation_prompt %}<|im_end|>\n{% endif %}", "<|im_end|>", "before the next prompt, too"},
		{`{% if not loop.last %}{{ "\n" }}<|im_end|>{% endif %}`, "\n<|im_end|>", "after a line's end"},
		{"{% if not loop.last %}---<|im_end|>\n{% endif %}", "", "other text follows the reply"},
		{"{% if not loop.last %}\n{% endif %}", "", "nothing ends a reply"},
	} {
		m := withTemplate(t, strings.Replace(template, "STOP", c.stop, 1))
		r := &rollout.Rollout{ID: "r", Messages: append(say("user: one", "assistant: first", "user: two", "assistant: see"),
			rollout.Message{Role: rollout.RoleTool, ToolCallID: "c1", Content: "file"}), Tools: []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "ls"}}`)}}
		r.Messages[3].ToolCalls = call
		r.Messages = append(r.Messages, say("assistant: last")...)
		for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep} {
			want := "first" + c.tail + `see[CALL]{"a": 1}[/CALL]` + c.tail + "last" + c.tail
			require.Equal(t, want, trainedText(t, m, mode, r), "%s, %s", mode, c.reason)
		}
		r.Turns = nil
		cut := *r
		cut.Messages = cut.Messages[:2]
		cut.Turns = []rollout.Turn{{Message: 1, FinishReason: "length"}}
		require.Equal(t, "first", trainedText(t, m, tokenize.PerStep, &cut), "a limit cut it, %s", c.reason)
	}
}

// A control token in a call's text ends no reply if the folder's stop token follows it.
func TestStopAfterTheMarkOfCalls(t *testing.T) {
	const template = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments }}<|endoftext|>{% endfor %}PASS{% endfor %}
{%- if add_generation_prompt %}PROMPT<|im_start|>assistant
{% else %}LAST{% endif %}`
	for _, c := range []struct{ pass, prompt, last, reason string }{
		{"<|im_end|>", "", "", "in the pass of the message"},
		{"{% if not loop.last %}<|im_end|>{% endif %}", "<|im_end|>", "<|im_end|>", "after the loop"},
		{"{% if not loop.last %}<|im_end|>{% endif %}", "", "", "before the next message"},
	} {
		m := withTemplate(t, strings.NewReplacer("PASS", c.pass, "PROMPT", c.prompt, "LAST", c.last).Replace(template))
		r := &rollout.Rollout{ID: "r", Messages: say("user: one", "assistant: see"), Tools: []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "ls"}}`)}}
		r.Messages[1].ToolCalls = []rollout.ToolCall{{ID: "c1", Name: "ls", Arguments: `{"a": 1}`}}
		require.Equal(t, `see{"a": 1}<|endoftext|><|im_end|>`, trainedText(t, m, tokenize.PerStep, r), c.reason)
	}
}

// The mark after the calls ends no reply if the token that ends other replies follows it, which the
// template writes after its loop (Jamba).
func TestStopAfterTheLoop(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}{% if not loop.first %}<|im_end|>{% endif %}<|im_start|>{{ m.role }}
{{ m.content }}{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}<|endoftext|>{% endif %}{% endfor %}<|im_end|>
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`)
	r := &rollout.Rollout{ID: "r", Messages: say("user: one", "assistant: see"), Tools: []rollout.Tool{rollout.Tool(`{"type": "function", "function": {"name": "ls"}}`)}}
	r.Messages[1].ToolCalls = []rollout.ToolCall{{ID: "c1", Name: "ls", Arguments: `{"a": 1}`}}
	for _, mode := range []tokenize.Mode{tokenize.PerStep, tokenize.Merged, tokenize.Whole} {
		require.Equal(t, `see{"a": 1}<|endoftext|><|im_end|>`, trainedText(t, m, mode, r), mode)
	}
}
