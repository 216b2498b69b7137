package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A reply begins after its header also where the generation prompt says more
// than the template writes before it, or where it is always there.
func TestTurnsBehindOtherPrompts(t *testing.T) {
	const loop = `{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}<|end|>{% else %}<|bot|>
{{ m.content }}<|end|>{% endif %}{% endfor %}`
	conv, err := NewConversation(List(
		Object(Member{"role", String("user")}, Member{"content", String("one")}), Object(Member{"role", String("assistant")}, Member{"content", String("first")}),
		Object(Member{"role", String("user")}, Member{"content", String("two")}), Object(Member{"role", String("assistant")}, Member{"content", String("second")}),
	), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	for _, c := range []struct{ prompt, reason string }{
		{"{% if add_generation_prompt %}<|bot|>\nHere are my steps:\n{% endif %}", "a first line of reasoning"},
		{"{% if add_generation_prompt %}<|bot|>\n<think>\n{% endif %}", "an opener of reasoning"},
		{"{% if add_generation_prompt %}<|bot|>\n{% endif %}", "the header"},
		{"{% if add_generation_prompt %}{{ '\\n' }}<|bot|>\n{% endif %}", "a line more in front"},
		{"{% if messages[-1].role == 'user' %}<|bot|>\n<think>{% endif %}", "a prompt that nobody asked for"},
	} {
		tmpl, err := Compile(loop+c.prompt, Options{})
		require.NoError(t, err)
		r, err := tmpl.Render(t.Context(), conv, Input{})
		require.NoError(t, err)
		turns, err := tmpl.Turns(t.Context(), conv, Input{}, r, TurnOptions{Stops: []string{"<|end|>"}})
		require.NoError(t, err)
		var got []string
		for _, turn := range turns {
			got = append(got, r.Text[turn.Start:turn.End])
		}
		require.Equal(t, []string{"first<|end|>", "second<|end|>"}, got, c.reason)
	}
}
