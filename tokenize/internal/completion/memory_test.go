package completion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat"
)

// Memory of one conversation is not used for another.
func TestTurnCacheAndOtherConversations(t *testing.T) {
	m := func(role, content string) chat.Value {
		return chat.Object(chat.Member{Key: "role", Value: chat.String(role)}, chat.Member{Key: "content", Value: chat.String(content)})
	}
	for _, x := range []struct {
		reason, source string
		conversations  [][]chat.Value
		want           []string
	}{
		{"markers of the end, one the beginning of the other",
			"{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% if messages[0].content == 'long' %}<|turn|>{% endif %}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
			[][]chat.Value{{m("user", "short"), m("assistant", "reply")}, {m("user", "long"), m("assistant", "reply")}}, []string{"reply<|end|>", "reply<|end|><|turn|>"}},
		{"headers of a reply that nothing stands in front of",
			"{% set bot = '<|a|>' if messages[0].content == 'a reply' else '<|the|>' %}{% for m in messages %}{{ bot }}{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}{{ bot }}{% endif %}",
			[][]chat.Value{{m("assistant", "a reply")}, {m("assistant", "the reply")}}, []string{"a reply<|end|>", "the reply<|end|>"}},
	} {
		tmpl, err := chat.Compile(x.source, chat.Options{})
		require.NoError(t, err)
		var memory turnMemory
		for i, messages := range x.conversations {
			c, err := chat.NewConversation(chat.List(messages...), chat.Null(), chat.Null(), chat.ConversationOptions{})
			require.NoError(t, err)
			r, err := tmpl.Render(t.Context(), c, chat.Input{})
			require.NoError(t, err)
			turn, ok, err := FindLast(t.Context(), tmpl, c, chat.Input{}, r, nil, nil, &memory)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, x.want[i], r.Text[turn.Start:turn.End], x.reason)
		}
	}
}
