package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// A loop that can only set flags ends early, and nobody can tell: a statement more
// in its body makes it an ordinary one.
func TestLoopsThatOnlySetFlags(t *testing.T) {
	kit.OneGoroutine(t)
	const source = `{%% set ns = namespace(a=0, b='-', n=0) %%}{%% set other = namespace(a=0) %%}
{%%- for m in %s %%}%s{%% if %s %%}%s{%% endif %%}{%% endfor %%}{{ ns.a }}{{ ns.b }}{{ ns.n }}{{ other.a }}{{ m is defined }}`
	vars, err := ParseJSON([]byte(`{"k":"x","list":[{"role":"u","x":1},{"role":"a","x":null,"t":[]},{"role":"a"},{"role":"u","t":[1]},{"role":"a","x":"y"}],
		"mixed":[{"role":"a"},7,{"role":"u"},null,"role"],"texts":["role","a"],"none":[]}`))
	require.NoError(t, err)
	failed := 0
	for _, items := range []string{"list", "list[::-1]", "list[1:]", "mixed", "mixed[::-1]", "(list + mixed[1:2])[::-1]", "([7] + list)[::-1]", "(mixed + list)[::-1]", "texts", "none", "list | map('default')", "list if k", "[list[0], nothing, list[1]]", "[other, list[0], other]", "[ns]"} {
		for _, test := range []string{
			"m.role == 'a'", "m['role'] != 'a'", "m.role == 'a' and 't' not in m", "'x' in m", "m.x is string or not m.t", "m.role", "m is mapping", "not m", "m.a == 0",
			"m.role == k", "m.role.x == 'a'", "m.items", "ns.a == 0", "ns.n == 0 and m.role == 'a'", "'a' in m.role", "'y' in m.x", "m.role | upper == 'A'", "loop.first", "m.role is eq 'a'",
		} {
			for _, body := range []string{"{% set ns.a = 1 %}", "{% set ns.a = 1 %}{% set ns.b = 'b' %}", "{% set ns.n = ns.n + 1 %}", "{% set m.a = 1 %}", "{% set other.a = 1 %}", "{% set a = 1 %}", "x{% set ns.a = 1 %}", "{% set ns._a = 1 %}", "{% set k.a = 1 %}", ""} {
				run := func(more string) (string, error) {
					tmpl, err := Compile(fmt.Sprintf(source, items, more, test, body), Options{})
					require.NoError(t, err)
					r, err := tmpl.RenderVars(t.Context(), vars, Input{})
					if err != nil {
						return "", err
					}
					return r.Text, nil
				}
				want, wantErr := run("{% set _ = 0 %}")
				got, err := run("{#           #}") // as long
				at := strings.Join([]string{items, test, body}, " / ")
				require.Equal(t, want, got, at)
				if wantErr == nil {
					require.NoError(t, err, at)
					continue
				}
				failed++
				require.Error(t, err, at)
				what := func(err error) string { what, _, _ := strings.Cut(err.Error(), " at \""); return what }
				require.Equal(t, what(wantErr), what(err), at)
			}
		}
	}
	require.Greater(t, failed, 100)
}

// Looking for a later message takes no longer than to the first one found.
func TestLoopsEndWhereTheyAreSettled(t *testing.T) {
	const source = `{%% set ns = namespace(found=false) %%}{%% for m in messages %%}%s{%% if m.role == 'assistant' and 'tool_calls' not in m %%}{%% set ns.found = true %%}{%% endif %%}{%% endfor %%}{{ ns.found }}`
	var messages []Value
	for range 1000 {
		messages = append(messages, Object(Member{"role", String("assistant")}))
	}
	c, err := NewConversation(List(messages...), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	for more, ends := range map[string]bool{"": true, "{% set _ = 0 %}": false} {
		tmpl, err := Compile(fmt.Sprintf(source, more), Options{Limits: Limits{Steps: 20}})
		require.NoError(t, err)
		r, err := tmpl.Render(t.Context(), c, Input{})
		require.Equal(t, ends, err == nil, "%v", err)
		if ends {
			require.Equal(t, "True", r.Text)
		}
	}
}
