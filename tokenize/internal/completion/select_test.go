package completion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat"
)

// In a context that shows some messages of a long history, with a note among them, the sampled text
// and the message positions are those of a conversation of the same messages.
func TestSelectedConversations(t *testing.T) {
	m := func(role, content string, more ...chat.Member) chat.Value {
		return chat.Object(append([]chat.Member{{Key: "role", Value: chat.String(role)}, {Key: "content", Value: chat.String(content)}}, more...)...)
	}
	call := chat.Object(chat.Member{Key: "function", Value: chat.Object(chat.Member{Key: "name", Value: chat.String("bash")},
		chat.Member{Key: "arguments", Value: chat.Object(chat.Member{Key: "command", Value: chat.String("ls")})})})
	history := []chat.Value{
		m("system", "be brief"), m("user", "one"), m("assistant", "same"), m("user", "two"),
		m("assistant", "", chat.Member{Key: "tool_calls", Value: chat.List(call)}), m("tool", "a.txt"),
		m("assistant", "same", chat.Member{Key: "reasoning_content", Value: chat.String("I think.")}), m("user", "three"), m("assistant", "last"),
	}
	note := m("user", "messages are left out here")
	whole, err := chat.NewConversation(chat.List(history...), chat.Null(), chat.Null(), chat.ConversationOptions{})
	require.NoError(t, err)
	for name, source := range map[string]string{"plain": chatML + asksML, "reasoning": thought + asksThink, "calls": calls + asksML, "roles alone": roles} {
		tmpl, err := chat.Compile(source, chat.Options{})
		require.NoError(t, err)
		found := 0
		for _, numbers := range [][]int{
			{0, 1, 2, 3, 4, 5, 6, 7, 8}, {0, 7, 8}, {1, 2, 9, 6, 7, 8}, {0, 9, 4, 5, 6}, {3, 4, 5, 6}, {9, 8}, {1, 2},
		} {
			var shown []chat.Value
			for _, n := range numbers {
				shown = append(shown, append(history, note)[n])
			}
			selected, err := whole.Select(numbers, note)
			require.NoError(t, err)
			fresh, err := chat.NewConversation(chat.List(shown...), chat.Null(), chat.Null(), chat.ConversationOptions{})
			require.NoError(t, err)
			turns := func(c *chat.Conversation) (string, []Span) {
				r, err := tmpl.Render(t.Context(), c, chat.Input{})
				require.NoError(t, err)
				spans, err := Find(t.Context(), tmpl, c, chat.Input{}, r, []string{"<|im_end|>"})
				require.NoError(t, err)
				return r.Text, spans
			}
			wantText, want := turns(fresh)
			gotText, got := turns(selected)
			require.Equal(t, wantText, gotText, "%s %v", name, numbers)
			require.Equal(t, want, got, "%s %v", name, numbers)
			found += len(got)
		}
		require.GreaterOrEqual(t, found, 10, name)
	}
}
