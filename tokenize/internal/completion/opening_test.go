package completion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat"
)

// A reply begins after its header also if the generation prompt says more than the template writes
// before the reply, or is always written.
func TestTurnsAfterOtherPrompts(t *testing.T) {
	const loop = `{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}<|end|>{% else %}<|bot|>
{{ m.content }}<|end|>{% endif %}{% endfor %}`
	conv, err := chat.NewConversation(chat.List(
		chat.Object(chat.Member{Key: "role", Value: chat.String("user")}, chat.Member{Key: "content", Value: chat.String("one")}), chat.Object(chat.Member{Key: "role", Value: chat.String("assistant")}, chat.Member{Key: "content", Value: chat.String("first")}),
		chat.Object(chat.Member{Key: "role", Value: chat.String("user")}, chat.Member{Key: "content", Value: chat.String("two")}), chat.Object(chat.Member{Key: "role", Value: chat.String("assistant")}, chat.Member{Key: "content", Value: chat.String("second")}),
	), chat.Null(), chat.Null(), chat.ConversationOptions{})
	require.NoError(t, err)
	for _, c := range []struct{ prompt, reason string }{
		{"{% if add_generation_prompt %}<|bot|>\nHere are my steps:\n{% endif %}", "a first line of reasoning"},
		{"{% if add_generation_prompt %}<|bot|>\n<think>\n{% endif %}", "an opener of reasoning"},
		{"{% if add_generation_prompt %}<|bot|>\n{% endif %}", "the header"},
		{"{% if add_generation_prompt %}{{ '\\n' }}<|bot|>\n{% endif %}", "a line more in front"},
		{"{% if messages[-1].role == 'user' %}<|bot|>\n<think>{% endif %}", "a prompt that nobody asked for"},
	} {
		tmpl, err := chat.Compile(loop+c.prompt, chat.Options{})
		require.NoError(t, err)
		r, err := tmpl.Render(t.Context(), conv, chat.Input{})
		require.NoError(t, err)
		turns, err := Find(t.Context(), tmpl, conv, chat.Input{}, r, []string{"<|end|>"})
		require.NoError(t, err)
		var got []string
		for _, turn := range turns {
			got = append(got, r.Text[turn.Start:turn.End])
		}
		require.Equal(t, []string{"first<|end|>", "second<|end|>"}, got, c.reason)
	}
}
