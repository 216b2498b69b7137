package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Messages without text have the turns that their headers and markers tell, and do
// not mislead those beside them.
func TestTurnsBesideEmptyTexts(t *testing.T) {
	const (
		pass   = "{% if m.role == 'assistant' %}<|bot|>\n{{ m.content }}{% else %}<|{{ m.role }}|>\n{{ m.content }}{% endif %}<|end|>\n"
		loop   = "{% for m in messages %}" + pass + "{% endfor %}"
		asked  = "{% if add_generation_prompt %}<|bot|>\n{% endif %}"
		places = "{% for i in range(messages|length) %}{% set m = messages[i] %}" + pass + "{% endfor %}" + asked
		steps  = loop + "{% if add_generation_prompt %}<|bot|>\nHere are my steps:\n{% endif %}"
		always = loop + "<|bot|>\n<think></think>"
		first  = "{% set messages = messages[1:] %}" + loop + asked
	)
	m := func(role, content string) Value {
		return Object(Member{"role", String(role)}, Member{"content", String(content)})
	}
	for _, x := range []struct {
		reason, source string
		messages       []Value
		want           []string
	}{
		{"ends with its own marker", places, []Value{m("user", "one"), m("assistant", ""), m("user", "two")}, []string{"<|end|>"}},
		{"ends with its own marker, once more", places, []Value{m("user", "one"), m("assistant", ""), m("user", "two"), m("assistant", ""), m("user", "two")}, []string{"<|end|>", "<|end|>"}},
		{"begins behind the header, an empty result in front", steps, []Value{m("user", "one"), m("assistant", "first"), m("tool", ""), m("assistant", "second")}, []string{"first<|end|>", "second<|end|>"}},
		{"begins behind the header, a reply in front", always, []Value{m("user", "one"), m("assistant", "first"), m("assistant", "second")}, []string{"first<|end|>", "second<|end|>"}},
		{"the loop left it out", first, []Value{m("assistant", "first"), m("assistant", "second")}, []string{"second<|end|>"}},
	} {
		tmpl, err := Compile(x.source, Options{})
		require.NoError(t, err)
		c, err := NewConversation(List(x.messages...), Null(), Null(), ConversationOptions{})
		require.NoError(t, err)
		r, err := tmpl.Render(t.Context(), c, Input{})
		require.NoError(t, err)
		turns, err := tmpl.Turns(t.Context(), c, Input{}, r, TurnOptions{})
		require.NoError(t, err)
		var got []string
		for _, turn := range turns {
			got = append(got, r.Text[turn.Start:turn.End])
		}
		require.Equal(t, x.want, got, x.reason)
	}
}
