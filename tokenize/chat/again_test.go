package chat

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A conversation that is rendered again, also as JSON of other forms, gives the results of a new conversation.
func TestRenderingAgainChangesNothing(t *testing.T) {
	const source = `{%- for m in messages %}{{ m.content | tojson }}|{{ m.content | tojson(indent=2) }}|{% set c = m.calls | tojson %}{{ c }}|{{ (m.calls | tojson(sort_keys=true)) + c[3:-3] }}
{% endfor %}{{ tools | tojson(indent=4) }}{{ tools | tojson(ensure_ascii=true) }}`
	tmpl, err := Compile(source, Options{})
	require.NoError(t, err)
	text := strings.Repeat("line \"one\"\n\tzwei é\U0001F600 ", 9)
	conversation := func() *Conversation {
		calls := List(Object(Member{"name", String("b")}, Member{"arguments", String(text)}), Int(7))
		messages := List(Object(Member{"role", String("tool")}, Member{"content", String(text)}, Member{"calls", calls}),
			Object(Member{"role", String("tool")}, Member{"content", String("short \"")}, Member{"calls", List()}))
		c, err := NewConversation(messages, List(Object(Member{"name", String("b")}, Member{"about", String(text)})), Null(), ConversationOptions{})
		require.NoError(t, err)
		return c
	}
	want, err := tmpl.Render(t.Context(), conversation(), Input{})
	require.NoError(t, err)
	c := conversation()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 4 {
				got, err := tmpl.Render(t.Context(), c, Input{})
				if err != nil || got.Text != want.Text || len(slices.Collect(got.Spans())) != len(slices.Collect(want.Spans())) {
					t.Errorf("rendered again: %v\n%s\nfirst\n%s", err, got.Text, want.Text)
					return
				}
			}
		})
	}
	group.Wait()
}

// A conversation that a template without limits rendered is refused by one whose limit it exceeds.
func TestSharedTextMeetsEachLimit(t *testing.T) {
	long := String(strings.Repeat("\n", 600))
	c, err := NewConversation(List(Object(Member{"content", List(long, long)})), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	const source = `{{ messages[0].content | tojson }}{% set x = messages[0].content | tojson %}`
	for _, bytes := range []int{0, 1000} {
		tmpl, err := Compile(source, Options{Limits: Limits{Bytes: bytes}})
		require.NoError(t, err)
		for range 3 {
			_, err = tmpl.Render(t.Context(), c, Input{})
			require.Equal(t, bytes == 0, err == nil, "%v", err)
		}
	}
}
