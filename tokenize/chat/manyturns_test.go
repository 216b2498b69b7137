package chat

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// callsConversation returns a conversation with the given number of assistant messages with a call, each with its
// result.
func callsConversation(t testing.TB, turns int) *Conversation {
	t.Helper()
	m := func(k string, v Value) Member { return Member{k, v} }
	messages := []Value{Object(m("role", String("system")), m("content", String("be brief"))), Object(m("role", String("user")), m("content", String("find the bug")))}
	for i := range turns {
		id := String(fmt.Sprintf("call%05d", i))
		function := Object(m("name", String("bash")), m("arguments", Object(m("command", String("ls")))))
		messages = append(messages,
			Object(m("role", String("assistant")), m("content", String(fmt.Sprintf("reply %d looks at the next file", i))), m("reasoning_content", String("so I look")),
				m("tool_calls", List(Object(m("type", String("function")), m("id", id), m("function", function))))),
			Object(m("role", String("tool")), m("content", String(fmt.Sprintf("line %d is fine", i))), m("tool_call_id", id)))
	}
	c, err := NewConversation(List(messages...), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	return c
}

// No template of the kit reaches a limit with a thousand turns, though some look at all messages for each message.
func TestThousandTurnsMeetNoLimit(t *testing.T) {
	kit.OneGoroutine(t)
	c := callsConversation(t, 1000)
	for name, tmpl := range kitTemplates(t) {
		used := kit.CPUTime()
		_, err := tmpl.Render(t.Context(), c, Input{Now: kit.TemplateClock, AddGenerationPrompt: true})
		require.NotErrorIs(t, err, rollout.KindLimit, name)
		if used = kit.CPUTime() - used; used.Milliseconds() > 20 {
			t.Logf("%s: %v of processor time", name, used)
		}
	}
}
