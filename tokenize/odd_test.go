package tokenize_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/certify"
)

// Templates that no model has: nothing between messages, messages in reverse, twice, nested, or
// cut. Rows are made or rejected, and no token of another message counts as sampled.
func TestOddTemplates(t *testing.T) {
	kit.OneGoroutine(t)
	const parts = `{{ m.reasoning_content }}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}`
	for _, template := range []string{
		`{% for m in messages %}{{ m.content }}{% endfor %}`,
		`{% for m in messages %}` + parts + `{% endfor %}`,
		`{% for m in messages|reverse %}` + parts + `<|im_end|>{% endfor %}`,
		`{% for m in messages %}` + parts + `{% endfor %}{% for m in messages %}` + parts + `<|im_end|>{% endfor %}`,
		`{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{{ m.content }}{{ m.reasoning_content }}{% endfor %}`,
		`{% for m in messages %}{{ m.content }}{{ messages[0].content }}{{ m.reasoning_content }}<|im_end|>{% endfor %}`,
		`{{ messages[-1].content }}`, `{{ messages[0].content }}<|im_end|>`, `{# nothing #}`, `<|im_end|>`,
		`{% for m in messages %}<|im_start|>{{ m.content|replace(" ", "<|im_end|>") }}{% endfor %}`,
		`{% for m in messages %}{{ m.content[:2] }}{{ m.content[1:] }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<think>{% endif %}`,
		`{{ messages|tojson }}`, `{{ messages }}`, `{{ messages|map(attribute="content")|join("<|im_end|>") }}`,
		`{% if add_generation_prompt %}{{ messages[0].content }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}`,
		`{% for m in messages %}{{ m.role }}{{ m.content }}{% if m.role == "assistant" and not loop.last %}{{ messages[loop.index].content }}{% endif %}{% endfor %}`,
	} {
		m := withTemplate(t, template)
		_, err := certify.Model(t.Context(), m)
		require.NoError(t, err, template)
		for _, c := range templateConversations() {
			r := &rollout.Rollout{ID: "r", Messages: c.messages}
			if c.tools {
				r.Tools = bashTool
			}
			for _, o := range []tokenize.Options{{}, {Mode: tokenize.PerStep}, {Mode: tokenize.PerStep, Edges: "document"}, {Mode: tokenize.Whole}, {Mode: tokenize.Whole, Edges: "document"}} {
				enc, err := tokenize.NewEncoder(m, o)
				require.NoError(t, err)
				seqs, _, err := enc.Encode(t.Context(), r)
				if err != nil {
					_, known := errors.AsType[*rollout.Error](err)
					require.True(t, known, "%s, %s: %v", template, c.name, err)
					require.NotErrorIs(t, err, rollout.KindInternal, "%s, %s", template, c.name)
					continue
				}
				for i := range seqs {
					require.NoError(t, seqs[i].Check(), "%s, %s", template, c.name)
					for k, f := range seqs[i].Flags {
						if src := seqs[i].Source[k]; f&rollout.FlagSampled != 0 && src >= 0 {
							require.Equal(t, rollout.RoleAssistant, r.Messages[src].Role, "%s, %s, %s: %s", template, c.name, o.Mode, strings.Join(sampled(t, m, &seqs[i]), "|"))
						}
					}
				}
			}
		}
	}
}
