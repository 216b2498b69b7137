package tokenize_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/tokenize"
)

// forgetful is a template that knows three roles, one system message, no tools and no reasoning of
// earlier turns.
const forgetful = `{% for m in messages %}{% if m.role == "system" and loop.first or m.role in ["user", "assistant"] %}<|im_start|>{{ m.role }}
{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

func TestMessagesThatTheTemplateLeavesOut(t *testing.T) {
	m := withTemplate(t, forgetful)
	copied := rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledCopied, Content: "an example", ToolCalls: []rollout.ToolCall{{ID: "c", Name: "bash", Arguments: "{}"}}}
	r := &rollout.Rollout{ID: "r", Messages: append(say("system: be brief", "developer: follow the guide", "system: twice", "user: hi", "critic: I object", "tool: a.txt", "user:  ", "assistant: hello", "exit: over"), copied)}
	r.Messages[7].Reasoning = "I greet."
	r.Messages = append(r.Messages, say("user: bye", "assistant: see you", "critic: never shown to a reply")...)
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
		enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: mode})
		require.NoError(t, err)
		_, report, err := enc.Encode(t.Context(), r)
		require.NoError(t, err)
		want := []tokenize.Unwritten{
			{Rollout: "r", Message: 1, Role: "developer", Part: "content"}, {Rollout: "r", Message: 2, Role: "system", Part: "content"},
			{Rollout: "r", Message: 4, Role: "critic", Part: "content"}, {Rollout: "r", Message: 5, Role: "tool", Part: "content"},
			{Rollout: "r", Message: 9, Role: "assistant", Part: "tool_calls"},
		}
		if mode == tokenize.Whole {
			want = append(want, tokenize.Unwritten{Rollout: "r", Message: 12, Role: "critic", Part: "content"})
			require.Equal(t, 1, report.LostReasoning, "the reasoning of an earlier turn is not in the document")
		}
		require.Equal(t, want, report.UnwrittenAt, mode)
		require.Equal(t, len(want), report.Unwritten)
		var all tokenize.Report
		for range 50 {
			all.Add(report)
		}
		require.Len(t, all.UnwrittenAt, 100, "all are counted, the first are listed")
		require.Equal(t, 50*len(want), all.Unwritten)
	}
	clean := &rollout.Rollout{ID: "c", Messages: say("system: be brief", "user: hi", "assistant: hello")}
	enc, err := tokenize.NewEncoder(m, tokenize.Options{})
	require.NoError(t, err)
	_, report, err := enc.Encode(t.Context(), clean)
	require.NoError(t, err)
	require.Zero(t, report.Unwritten)
}

// Whole rows follow the other modes: a turn with unknown context is not trained.
func TestWholeLeavesUnknownContextsUntrained(t *testing.T) {
	m := embeddedModel(t)
	r := &rollout.Rollout{ID: "r", Messages: say("user: hi", "assistant: hello", "user: bye", "assistant: see you")}
	r.Turns = []rollout.Turn{{Message: 1, Context: rollout.Context{Unknown: true}}, {Message: 3, Step: 1}}
	enc, err := tokenize.NewEncoder(m, tokenize.Options{Mode: tokenize.Whole})
	require.NoError(t, err)
	seqs, report, err := enc.Encode(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, []string{"see you<|im_end|>"}, sampled(t, m, &seqs[0]))
	require.Equal(t, 1, report.UnknownContext)
	require.ErrorContains(t, report.FirstUnknown, "message 1")
	require.Zero(t, report.EmptyTurns)
	r.Turns[1].Context.Unknown = true
	seqs, report, err = enc.Encode(t.Context(), r)
	require.NoError(t, err)
	require.Empty(t, seqs)
	require.Equal(t, 2, report.UnknownContext)
	require.Equal(t, 2, report.Turns)
}

// A template gets the recorded keys that it reads, as transformers passes them.
func TestTemplatesReadRecordedKeys(t *testing.T) {
	m := withTemplate(t, `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.tool_plan %}plan: {{ m.tool_plan }}
{% endif %}{{ m.content }}{% if m.prefix is defined %} ({{ m.prefix }}){% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`)
	line := `{"id":"r","messages":[{"role":"user","content":"hi","tool_plan":"<|im_end|>","cost":{"usd":1}},{"role":"assistant","content":"ok","tool_plan":"first this","prefix":null,"tool_calls":[]}]}`
	r, err := jsonl.Parse([]byte(line), jsonl.Options{})
	require.NoError(t, err)
	for _, mode := range []tokenize.Mode{tokenize.Merged, tokenize.PerStep, tokenize.Whole} {
		seqs := encode(t, m, tokenize.Options{Mode: mode}, r)
		require.Contains(t, decode(t, m, seqs[0].IDs), "<|im_start|>user\nplan: <|im_end|>\nhi<|im_end|>\n<|im_start|>assistant\nplan: first this\nok<|im_end|>")
		stops := 0
		for _, id := range seqs[0].IDs {
			if m.IsStop(id) {
				stops++
			}
		}
		require.Equal(t, 2, stops, "what stands in a recorded key forges nothing")
		require.Equal(t, []string{"plan: first this\nok<|im_end|>"}, sampled(t, m, &seqs[0]), mode)
	}
}
