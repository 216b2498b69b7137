package completion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat"
)

// Messages without text have the turns that their headers and markers show, and do not change the
// turns of their neighbours.
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
	m := func(role, content string) chat.Value {
		return chat.Object(chat.Member{Key: "role", Value: chat.String(role)}, chat.Member{Key: "content", Value: chat.String(content)})
	}
	for _, x := range []struct {
		reason, source string
		messages       []chat.Value
		want           []string
	}{
		{"ends with its own marker", places, []chat.Value{m("user", "one"), m("assistant", ""), m("user", "two")}, []string{"<|end|>"}},
		{"ends with its own marker, once more", places, []chat.Value{m("user", "one"), m("assistant", ""), m("user", "two"), m("assistant", ""), m("user", "two")}, []string{"<|end|>", "<|end|>"}},
		{"begins behind the header, an empty result in front", steps, []chat.Value{m("user", "one"), m("assistant", "first"), m("tool", ""), m("assistant", "second")}, []string{"first<|end|>", "second<|end|>"}},
		{"begins behind the header, a reply in front", always, []chat.Value{m("user", "one"), m("assistant", "first"), m("assistant", "second")}, []string{"first<|end|>", "second<|end|>"}},
		{"the loop left it out", first, []chat.Value{m("assistant", "first"), m("assistant", "second")}, []string{"second<|end|>"}},
	} {
		tmpl, err := chat.Compile(x.source, chat.Options{})
		require.NoError(t, err)
		c, err := chat.NewConversation(chat.List(x.messages...), chat.Null(), chat.Null(), chat.ConversationOptions{})
		require.NoError(t, err)
		r, err := tmpl.Render(t.Context(), c, chat.Input{})
		require.NoError(t, err)
		turns, err := Find(t.Context(), tmpl, c, chat.Input{}, r, nil)
		require.NoError(t, err)
		var got []string
		for _, turn := range turns {
			got = append(got, r.Text[turn.Start:turn.End])
		}
		require.Equal(t, x.want, got, x.reason)
	}
}
