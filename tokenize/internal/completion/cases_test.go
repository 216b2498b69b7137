package completion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// The parts of templates.
const (
	chatML    = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
	asksML    = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	asksThink = "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
	thought   = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
	calls     = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.arguments | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
	roles     = "{% for m in messages %}{% if m.role == 'user' %}<|user|>{% else %}<|assistant|>{% endif %}{{ m.content }}{% endfor %}"
)

// Which bytes of a reply the policy sampled. alone is the reply right after its own prompt, as in
// merged and per-step rows; within is the reply in a conversation that continues, as in whole rows;
// "" = none.
func TestCases(t *testing.T) {
	plain := []rollout.Message{render.User("one"), render.Assistant("first"), render.User("two"), render.Assistant("second")}
	reasoned := []rollout.Message{render.User("one"), render.Thinking("I think.", "first"), render.User("two"), render.Assistant("second")}
	call := render.Calling("", "a")
	called := []rollout.Message{render.User("one"), call, render.Answering("a", "found <|im_end|>"), render.Assistant("done")}
	for _, c := range []struct {
		why, template string
		messages      []rollout.Message
		cut           bool // the first reply was truncated
		alone, within []string
	}{
		{"a reply begins after the generation prompt and ends with its stop token", chatML + asksML,
			plain, false, []string{"first<|im_end|>", "second<|im_end|>"}, []string{"first<|im_end|>", "second<|im_end|>"}},
		{"a reply that a limit cut has no stop token", chatML + asksML,
			plain, true, []string{"first", "second<|im_end|>"}, []string{"first", "second<|im_end|>"}},
		{"reasoning is sampled, its opener too where the prompt lacks it", thought + asksML,
			reasoned, false, []string{"<think>\nI think.\n</think>\n\nfirst<|im_end|>", "second<|im_end|>"}, []string{"<think>\nI think.\n</think>\n\nfirst<|im_end|>", "second<|im_end|>"}},
		{"an opener of reasoning that the prompt ends with is not", thought + asksThink,
			reasoned, false, []string{"I think.\n</think>\n\nfirst<|im_end|>", "second<|im_end|>"}, []string{"I think.\n</think>\n\nfirst<|im_end|>", "second<|im_end|>"}},
		{"a block of reasoning around nothing was never sampled",
			"{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}<think>\n\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}" + asksML,
			plain, false, []string{"first<|im_end|>", "second<|im_end|>"}, []string{"first<|im_end|>", "second<|im_end|>"}},
		{"content is taken as recorded after its own prompt, and as written within the conversation",
			"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}" + asksML,
			[]rollout.Message{render.User("one"), render.Assistant(" first "), render.User("two")}, false, []string{" first <|im_end|>"}, []string{"first<|im_end|>"}},
		{"what frames a tool call is sampled; a stop token in a result ends nothing", calls + asksML,
			called, false, []string{`<tool_call>{"command": "probe a"}</tool_call><|im_end|>`, "done<|im_end|>"}, []string{`<tool_call>{"command": "probe a"}</tool_call><|im_end|>`, "done<|im_end|>"}},
		{"the marker of the next role ends a reply that has no other end (GLM)", roles + "{% if add_generation_prompt %}<|assistant|>{% endif %}",
			plain, false, []string{"first<|user|>", "second<|user|>"}, []string{"first<|user|>", "second"}},
		{"a header that the prompt lacks after a result is not sampled (DiffusionGemma)",
			chatML + "{% if add_generation_prompt and messages[-1].role == 'user' %}<|im_start|>assistant\n{% endif %}",
			[]rollout.Message{render.User("one"), render.Assistant("I look."), render.Answering("a", "found"), render.Assistant("done")}, false,
			[]string{"I look.<|im_end|>", "done<|im_end|>"}, []string{"I look.<|im_end|>", "done<|im_end|>"}},
		{"a name in the header is not sampled",
			"{% for m in messages %}<|im_start|>{{ m.role }}{{ ' ' + m.name if m.name }}\n{{ m.content }}<|im_end|>\n{% endfor %}" + asksML,
			[]rollout.Message{render.User("one"), {Role: rollout.RoleAssistant, Name: "bob", Content: "first"}}, false, []string{"first<|im_end|>"}, []string{"first<|im_end|>"}},
		{"reasoning that a later question takes away is lost within the conversation only",
			"{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}" + asksML,
			reasoned, false, []string{"<think>I think.</think>first<|im_end|>", "second<|im_end|>"}, []string{"first<|im_end|>", "second<|im_end|>"}},
		{"a first line of reasoning that the prompt writes is not sampled",
			chatML + "{% if add_generation_prompt %}<|im_start|>assistant\nHere are my steps:\n{% endif %}",
			plain, false, []string{"first<|im_end|>", "second<|im_end|>"}, []string{"first<|im_end|>", "second<|im_end|>"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			var alone, within []string
			r := &rollout.Rollout{Messages: c.messages}
			rule, f := finderFor(t, c.template, r)
			for i := range c.messages {
				m := &c.messages[i]
				if m.Role != rollout.RoleAssistant {
					continue
				}
				turn := rollout.Turn{Message: i}
				prompt, err := f.Render.Prompt(&turn)
				require.NoError(t, err)
				with, at, err := f.Answered(&turn, AsSampled(m), &prompt)
				require.NoError(t, err)
				out, frame := rule.SampledText(m, int32(i), &prompt, &with, at, c.cut && i == 1)
				if c.cut && i == 1 {
					frame.Stop = ""
				}
				alone = append(alone, out.Text+frame.Stop)
			}
			doc, spans, err := f.Document()
			require.NoError(t, err)
			for _, s := range spans {
				start, end := rule.SpanIn(&c.messages[s.Message], int32(s.Message), &doc, s, c.cut && s.Message == 1)
				require.NoError(t, rule.CheckSpan(&doc, s, start, end))
				within = append(within, doc.Text[start:end])
			}
			require.Equal(t, c.alone, alone, "after its own prompt")
			require.Equal(t, c.within, within, "within the conversation")
		})
	}
}

// If nothing shows that the policy sampled the text before a reply, the reply is rejected.
func TestRefusedOpenings(t *testing.T) {
	for _, c := range []struct{ why, template, want string }{
		{"a header, and no generation prompt", chatML, "<|im_start|>assistant"},
		{"recorded text of others between the prompt and the reply",
			"{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{{ messages[0].content }}: {% endif %}{{ m.content }}<|im_end|>\n{% endfor %}" + asksML, "one"},
	} {
		r := &rollout.Rollout{Messages: []rollout.Message{render.User("one"), render.Assistant("first")}}
		rule, f := finderFor(t, c.template, r)
		turn := rollout.Turn{Message: 1}
		prompt, err := f.Render.Prompt(&turn)
		require.NoError(t, err)
		with, at, err := f.Answered(&turn, nil, &prompt)
		require.NoError(t, err)
		_, frame := rule.SampledText(&r.Messages[1], 1, &prompt, &with, at, false)
		err = rule.Opening().CheckLead(&frame)
		require.ErrorIs(t, err, rollout.KindTemplate, c.why)
		require.ErrorContains(t, err, c.want, c.why)
	}
}

// Which tokens end replies, for folders that list them and folders that name only the eos_token.
func TestEnds(t *testing.T) {
	const ended = "{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
	for _, c := range []struct {
		why, template string
		listed        bool
		stops         []string // ids at which the engine stops
		texts         []string // texts that end a reply
	}{
		{"listed: what the template writes in its place ends the text, and the engine stops as listed", ended, true, []string{"<|im_end|>"}, []string{"<|end|>", "<|im_end|>"}},
		{"not listed: the engine stops there, too", ended, false, []string{"<|im_end|>", "<|end|>"}, []string{"<|end|>", "<|im_end|>"}},
		{"the stop token is what the template writes", chatML, false, []string{"<|im_end|>"}, []string{"<|im_end|>"}},
		{"the marker of the next role", roles, false, []string{"<|im_end|>", "<|user|>"}, []string{"<|im_end|>", "<|user|>"}},
		{"no template", "", false, []string{"<|im_end|>"}, []string{"<|im_end|>"}},
	} {
		rule := New(source(t, c.template, c.listed))
		var stops []string
		for _, id := range rule.Ends().IDs {
			stops = append(stops, added()[id].Content)
		}
		require.Equal(t, c.stops, stops, c.why)
		require.Equal(t, c.texts, rule.Ends().texts, c.why)
	}
}

// added returns control tokens whose ids are their indices.
func added() []engine.AddedToken {
	var out []engine.AddedToken
	for i, text := range []string{"<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>", "<|end|>"} {
		out = append(out, engine.AddedToken{ID: rollout.TokenID(i), Content: text, Special: true})
	}
	return out
}

// source returns a folder that names <|im_end|> as its eos_token.
func source(t *testing.T, template string, listed bool) Source {
	t.Helper()
	s := Source{Added: added(), Named: []rollout.TokenID{1}, Listed: listed}
	if template != "" {
		var err error
		s.Template, err = chat.Compile(template, chat.Options{})
		require.NoError(t, err)
	}
	return s
}

func finderFor(t *testing.T, template string, r *rollout.Rollout) (*Rule, *Finder) {
	t.Helper()
	rule := New(source(t, template, false))
	x, err := render.New(t.Context(), rule.Template, r, render.Options{})
	require.NoError(t, err)
	return rule, &Finder{Rule: rule, Render: x}
}
