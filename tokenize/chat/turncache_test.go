package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a cache learnt of one conversation says nothing of another.
func TestTurnCacheAndOtherConversations(t *testing.T) {
	m := func(role, content string) Value {
		return Object(Member{"role", String(role)}, Member{"content", String(content)})
	}
	for _, x := range []struct {
		reason, source string
		conversations  [][]Value
		want           []string
	}{
		{"markers of the end, one the beginning of the other",
			"{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% if messages[0].content == 'long' %}<|turn|>{% endif %}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
			[][]Value{{m("user", "short"), m("assistant", "reply")}, {m("user", "long"), m("assistant", "reply")}}, []string{"reply<|end|>", "reply<|end|><|turn|>"}},
		{"headers of a reply that nothing stands in front of",
			"{% set bot = '<|a|>' if messages[0].content == 'a reply' else '<|the|>' %}{% for m in messages %}{{ bot }}{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}{{ bot }}{% endif %}",
			[][]Value{{m("assistant", "a reply")}, {m("assistant", "the reply")}}, []string{"a reply<|end|>", "the reply<|end|>"}},
	} {
		tmpl, err := Compile(x.source, Options{})
		require.NoError(t, err)
		var cache TurnCache
		for i, messages := range x.conversations {
			c, err := NewConversation(List(messages...), Null(), Null(), ConversationOptions{})
			require.NoError(t, err)
			r, err := tmpl.Render(t.Context(), c, Input{})
			require.NoError(t, err)
			turn, ok, err := tmpl.LastTurn(t.Context(), c, Input{}, r, TurnOptions{Cache: &cache})
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, x.want[i], r.Text[turn.Start:turn.End], x.reason)
		}
	}
}
