package chat

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A sum is printed term by term unless a term can be Markup, which escapes the strings added to it.
func TestPrintedSums(t *testing.T) {
	vars := Object(Member{"x", String("<b>")}, Member{"l", List(String("<b>"))}, Member{"f", String("safe")}, Member{"n", Int(7)}, Member{"d", Object(Member{"k", String("\"")})})
	for _, c := range []struct{ source, want, reason string }{
		{`{{ '<' + x + '>' }}`, `<<b>>`, "strings"},
		{`{{ x + (d | tojson) + x }}`, `<b>{"k": "\""}<b>`, "a filter that gives a string"},
		{`{{ n + n + 1 }}`, `15`, "numbers"},
		{`{{ l + [x + '!'] }}`, `['<b>', '<b>!']`, "lists"},
		{`{{ '<' + (x | safe) + '>' }}`, `&lt;<b>&gt;`, "Markup"},
		{`{{ (x | e) + '<' }}`, `&lt;b&gt;&lt;`, "Markup in front"},
		{`{{ '<' + (l | map('safe') | first) }}`, `&lt;<b>`, "Markup from a filter by name"},
		{`{{ '<' + (l | map(f) | first) }}`, `&lt;<b>`, "Markup from a filter by a variable"},
		{`{{ '<' + (l | map(*['safe']) | first) }}`, `&lt;<b>`, "Markup from a filter by an unpacked list"},
	} {
		tmpl, err := Compile(c.source, Options{})
		require.NoError(t, err, c.reason)
		r, err := tmpl.RenderVars(t.Context(), vars, Input{})
		require.NoError(t, err, c.reason)
		require.Equal(t, c.want, r.Text, c.reason)
	}
	tmpl, err := Compile(`{{ '<' + x + n }}`, Options{})
	require.NoError(t, err)
	_, err = tmpl.RenderVars(t.Context(), vars, Input{})
	require.ErrorContains(t, err, `can only concatenate str (not "int") to str`)
}
