package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

const settleVars = `{"k":"x","list":[{"role":"u","x":1},{"role":"a","x":null,"t":[]},{"role":"a"},{"role":"u","t":[1]},{"role":"a","x":"y"}],
	"mixed":[{"role":"a"},7,{"role":"u"},null,"role"],"texts":["role","a"],"none":[]}`

// A loop that can only set flags ends early, and nobody can tell: a statement more
// in its body makes it an ordinary one.
func TestLoopsThatOnlySetFlags(t *testing.T) {
	kit.OneGoroutine(t)
	const source = `{%% set ns = namespace(a=0, b='-', n=0) %%}{%% set other = namespace(a=0) %%}
{%%- for m in %s %%}MORE{%% if %s %%}%s{%% endif %%}{%% endfor %%}{{ ns.a }}{{ ns.b }}{{ ns.n }}{{ other.a }}{{ m is defined }}`
	failed := 0
	for _, items := range []string{"list", "list[::-1]", "list[1:]", "mixed", "mixed[::-1]", "(list + mixed[1:2])[::-1]", "([7] + list)[::-1]", "(mixed + list)[::-1]", "texts", "none", "list | map('default')", "list if k", "[list[0], nothing, list[1]]", "[other, list[0], other]", "[ns]"} {
		for _, test := range []string{
			"m.role == 'a'", "m['role'] != 'a'", "m.role == 'a' and 't' not in m", "'x' in m", "m.x is string or not m.t", "m.role", "m is mapping", "not m", "m.a == 0",
			"m.role == k", "m.role.x == 'a'", "m.items", "ns.a == 0", "ns.n == 0 and m.role == 'a'", "'a' in m.role", "'y' in m.x", "m.role | upper == 'A'", "loop.first", "m.role is eq 'a'",
		} {
			for _, body := range []string{"{% set ns.a = 1 %}", "{% set ns.a = 1 %}{% set ns.b = 'b' %}", "{% set ns.n = ns.n + 1 %}", "{% set m.a = 1 %}", "{% set other.a = 1 %}", "{% set a = 1 %}", "x{% set ns.a = 1 %}", "{% set ns._a = 1 %}", "{% set k.a = 1 %}", ""} {
				failed += checkSettled(t, fmt.Sprintf(source, items, test, body))
			}
		}
	}
	require.Greater(t, failed, 100)
}

// So does a loop that asks a flag first, whatever it counts in front of that.
func TestLoopsThatAskAFlagFirst(t *testing.T) {
	kit.OneGoroutine(t)
	const source = `{%% set ns = namespace(on=true, n=0, at=none, l=none) %%}{%% set i = 'outer' %%}
{%%- for m in %s %%}%sMORE{%% if %s %%}%s{%% endif %%}{%% endfor %%}{{ ns.on }}{{ ns.n }}{{ ns.at }}{{ ns.l.index }}{{ i }}`
	failed := 0
	for _, items := range []string{"list", "list[::-1]", "mixed", "range(9)", "list if m is not none"} {
		for _, count := range []string{"", "{% set i = loop.index0 %}", "{% set i = (list | length - 1) - loop.index0 %}{% set j = i + 1 %}", "{% set i = m %}", "{% set i = 1 // (loop.index0 - 2) %}", "{% set i = m.x - 1 %}",
			"{% set i = loop.nextitem + 1 %}", "{% set ns.n = ns.n + 1 %}", "{% set i = loop %}", "{{ loop.index }}"} {
			for _, test := range []string{"ns.on and m.role == 'a'", "ns.on", "not ns.on", "(ns.on and m.role) and m.x", "ns.on and loop.index > 1", "ns.on or m.x", "m.x and ns.on", "not ns.on and m", "i and m.role == 'a'", "m.on and m.x", "loop.first and m.x"} {
				for _, body := range []string{"{% set ns.on = false %}{% set ns.at = i %}", "{% set ns.n = ns.n + 1 %}", "{% set ns.on = not ns.on %}{% set ns.l = loop %}", "{% set ns.on = m.x %}x", "", "{% set ns.on = false %}{% else %}{% set ns.at = i %}",
					"{% elif m.x %}{% set ns.on = true %}"} {
					failed += checkSettled(t, fmt.Sprintf(source, items, count, test, body))
				}
			}
		}
	}
	require.Greater(t, failed, 100)
}

// checkSettled runs a template with nothing at MORE, and with what takes part in each
// pass of a loop. It returns how many of both failed.
func checkSettled(t *testing.T, source string) (failed int) {
	t.Helper()
	vars, err := ParseJSON([]byte(settleVars))
	require.NoError(t, err)
	run := func(more string) (string, error) {
		tmpl, err := Compile(strings.Replace(source, "MORE", more, 1), Options{})
		require.NoError(t, err)
		r, err := tmpl.RenderVars(t.Context(), vars, Input{})
		if err != nil {
			return "", err
		}
		return r.Text, nil
	}
	want, wantErr := run("{% set _ = m %}")
	got, err := run("{#           #}") // as long
	require.Equal(t, want, got, source)
	if wantErr == nil {
		require.NoError(t, err, source)
		return 0
	}
	require.Error(t, err, source)
	what := func(err error) string { what, _, _ := strings.Cut(err.Error(), " at \""); return what }
	require.Equal(t, what(wantErr), what(err), source)
	return 1
}

// Looking for a message from the end takes no longer than to the first one found.
func TestLoopsEndWhereTheyAreSettled(t *testing.T) {
	for source, ends := range map[string]bool{
		"{% for m in messages %}{% if m.role == 'assistant' and 'tool_calls' not in m %}{% set ns.found = true %}{% endif %}{% endfor %}":                               true,
		"{% for m in messages %}{% set _ = m %}{% if m.role == 'assistant' and 'tool_calls' not in m %}{% set ns.found = true %}{% endif %}{% endfor %}":                false,
		"{% for m in messages[::-1] %}{% set i = messages|length - loop.index %}{% if ns.seeking and m.role %}{% set ns.seeking = false %}{% endif %}{% endfor %}":      true,
		"{% for m in messages[::-1] %}{% set i = messages|length - loop.index %}{% if m.role and ns.seeking %}{% set ns.seeking = false %}{% endif %}{% endfor %}":      false,
		"{% for m in messages[::-1] %}{% set i = messages|length - loop.index %}{% if ns.seeking and loop.length %}{% set ns.seeking = false %}{% endif %}{% endfor %}": false,
	} {
		var messages []Value
		for range 1000 {
			messages = append(messages, Object(Member{"role", String("assistant")}))
		}
		c, err := NewConversation(List(messages...), Null(), Null(), ConversationOptions{})
		require.NoError(t, err)
		tmpl, err := Compile("{% set ns = namespace(found=false, seeking=true) %}"+source+"{{ ns.found }}", Options{Limits: Limits{Steps: 20}})
		require.NoError(t, err)
		_, err = tmpl.Render(t.Context(), c, Input{})
		require.Equal(t, ends, err == nil, "%s: %v", source, err)
	}
}
