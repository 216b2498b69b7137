package chat

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A name that the template fetched from the call belongs to the tool message that follows it; other text is
// unaffected.
func TestFetchedNames(t *testing.T) {
	const calls = "{% if m.role == 'assistant' %}{% for c in m.tool_calls %}{{ c.function.name }}({{ c.function.name }}){% endfor %}"
	const fetched = calls + "{% elif m.role == 'tool' %}{% for x in messages %}{% for c in x.tool_calls or [] %}{% if c.id == m.tool_call_id %}{{ c.function.name }}{% endif %}{% endfor %}{% endfor %}: {{ m.content }}{% endif %} "
	const written = calls + "{# tool_call_id #}{% elif m.role == 'tool' %}{{ m.name }}: {{ m.content }}{% endif %} "
	m := func(k string, v Value) Member { return Member{k, v} }
	call := func(id, name string) Value {
		fn := Object(m("name", String(name)), m("arguments", Object()))
		return Object(m("role", String("assistant")), m("tool_calls", List(Object(m("id", String(id)), m("function", fn)))))
	}
	result := func(id, name, text string) Value {
		return Object(m("role", String("tool")), m("tool_call_id", String(id)), m("name", String(name)), m("content", String(text)))
	}
	c, err := NewConversation(List(call("a", "ls"), result("a", "ls", "one"), call("b", "ls"), result("b", "ls", ""), result("b", "ls", "again")), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	// Results written in the pass of the call, as in Gemma 4: two calls, the first without text.
	const ahead = "{% if m.role == 'assistant' %}{% for c in m.tool_calls %}{{ c.function.name }}{% endfor %}{% for x in messages[loop.index:] %}{% if x.role != 'tool' %}{% break %}{% endif %}" +
		"{% for c in m.tool_calls %}{% if c.id == x.tool_call_id %}{{ c.function.name }}{% endif %}{% endfor %}={{ x.content }}{% endfor %}{% endif %} "
	both := Object(m("role", String("assistant")), m("tool_calls", List(
		Object(m("id", String("a")), m("function", Object(m("name", String("ls"))))), Object(m("id", String("b")), m("function", Object(m("name", String("cat"))))))))
	parallel, err := NewConversation(List(both, result("a", "ls", ""), result("b", "cat", "text"), call("c", "ls"), result("c", "ls", "")), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	// A result without the name, after one with it.
	lacking, err := NewConversation(List(call("a", "ls"), result("a", "ls", "one"), call("b", "cat"), Object(m("role", String("tool")), m("tool_call_id", String("b")), m("content", String("two")))), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	for _, x := range []struct {
		name string
		c    *Conversation
		body string
		n    int
		want string
	}{
		{"fetched, not all named", lacking, fetched, 4, "0:ls 0:ls 0:ls 1:one 2:cat 2:cat 2:cat 3:two"},
		{"fetched, all named so far", lacking, fetched, 3, "0:ls 0:ls 1:ls 1:one 2:cat 2:cat"},
		{"ahead", parallel, ahead, 5, "0:ls 0:cat 1:ls 2:cat 2:text 3:ls 4:ls"},
		{"ahead, no message yet", parallel, ahead, 1, "0:ls 0:cat"},
		{"fetched", c, fetched, 5, "0:ls 0:ls 1:ls 1:one 2:ls 2:ls 3:ls 4:ls 4:again"},
		{"written by the message", c, written, 5, "0:ls 0:ls 1:ls 1:one 2:ls 2:ls 3:ls 4:ls 4:again"},
		{"no message yet", c, fetched, 1, "0:ls 0:ls"},
		{"no message yet, written", c, written, 3, "0:ls 0:ls 1:ls 1:one 2:ls 2:ls"},
	} {
		tmpl, err := Compile("{% for m in messages %}"+x.body+"{% endfor %}", Options{})
		require.NoError(t, err)
		owners := func(r *Result) string {
			var out []string
			for s := range r.Spans() {
				if s.Field != nil {
					out = append(out, strings.Join([]string{string('0' + rune(s.Field.Message)), r.Text[s.Start:s.End]}, ":"))
				}
			}
			return strings.Join(out, " ")
		}
		r, err := tmpl.Render(t.Context(), x.c.Prefix(x.n), Input{})
		require.NoError(t, err)
		require.Equal(t, x.want, owners(r), x.name)
	}
}
