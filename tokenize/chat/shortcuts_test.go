package chat

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// Renderings take shortcuts for common template code. Each test compares with an equivalent template without a
// shortcut.

// shortcut renders two templates, requires equal results, and reports whether both failed.
func shortcut(t *testing.T, vars Value, quick, slow string) bool {
	t.Helper()
	render := func(source string) (string, error) {
		tmpl, err := Compile(source, Options{})
		require.NoError(t, err, source)
		for range 2 {
			var r *Result
			if r, err = tmpl.RenderVars(t.Context(), vars, Input{}); err == nil {
				source = r.Text
			}
		}
		return source, err
	}
	want, wantErr := render(slow)
	got, err := render(quick)
	if wantErr == nil {
		require.NoError(t, err, quick)
		require.Equal(t, want, got, quick)
		return false
	}
	require.Error(t, err, quick)
	what := func(err error) string {
		what, _, _ := strings.Cut(err.Error(), " at \"")
		return what[strings.LastIndex(what, ": "):]
	}
	require.Equal(t, what(wantErr), what(err), quick)
	return true
}

// The body after a condition reuses the value that the condition found under a key. It must be of this pass and this
// variable, whatever ran in between.
func TestWhatWasAskedForIsTaken(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 37
	rng := rand.New(rand.NewPCG(seed, 0))
	vars, err := ParseJSON([]byte(`{"messages":[{"role":"user","a":"1","b":{"a":"2"}},{"role":"tool","a":null,"b":[]},{"role":"user"},{"role":"tool","a":"","b":{"a":{"a":"3","b":"4"}}},{"a":{"a":"5"},"b":["6<","7"]}]}`))
	require.NoError(t, err)
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	var body func(depth int) string
	taken := func(asked, key string, depth int) string {
		of, to := pick(asked, asked, asked, "m", "x.b"), pick("x", "y", "m")
		key = pick(key, key, key, "a")
		switch rng.IntN(5) {
		case 0:
			return fmt.Sprintf("{{ %s.%s }}", of, key)
		case 1:
			return fmt.Sprintf("{{ %s.%s|tojson }}", of, key)
		case 2:
			return fmt.Sprintf("{%% for %s in %s.%s %%}%s{%% endfor %%}", to, of, key, body(depth-1))
		default:
			return fmt.Sprintf("{%% set %s = %s.%s %%}%s{{ %s }}", to, of, key, body(depth-1), to)
		}
	}
	body = func(depth int) string {
		var b strings.Builder
		for range 1 + rng.IntN(3) {
			of, key := pick("m", "m", "x", "ns", "loop", "m.b"), pick("a", "b", "first", "missing")
			other, second := pick("m", "m", "x"), pick("a", "a", "b")
			switch {
			case depth <= 0 || rng.IntN(3) == 0:
				b.WriteString(pick("{{ x }};", "{{ m.a }};", "{% set x = m.b %}", "{% set ns.a = x %}", "{% set x = 7 %}"))
			case rng.IntN(4) == 0:
				fmt.Fprintf(&b, "{%% for m in %s %%}%s{%% endfor %%}", pick("messages", "messages[loop.index:]", "messages[::-1]"), body(depth-1))
			case rng.IntN(8) == 0:
				fmt.Fprintf(&b, "{%% autoescape true %%}%s{%% endautoescape %%}", body(depth-1))
			default:
				fmt.Fprintf(&b, "{%% if %s.%s%s %%}%s{%% elif %s.%s %%}%s{%% else %%}%s{%% endif %%};", of, key, pick("", "", " is string", " is defined", " is undefined", " is none", " is mapping"),
					taken(of, key, depth), other, second, taken(other, second, depth), taken(pick(of, other), pick(key, second), depth))
			}
		}
		return b.String()
	}
	direct := regexp.MustCompile(`(= |in |{{ )((?:m|x|ns|loop)(?:\.b)?\.\w+)(\|tojson)?( [%}]})`)
	failed := 0
	const rounds = 1500
	for range rounds {
		source := "{% set ns = namespace(a=1) %}{% set x = messages[0] %}{% set y = 0 %}{% for m in messages %}" + body(3) + "{% endfor %}"
		if shortcut(t, vars, source, direct.ReplaceAllString(source, "$1[$2][0]$3$4")) {
			failed++
		}
	}
	require.Less(t, failed, rounds*9/10)
}

// The text of a message that the conditions of an if test is looked up once. The conditions are still evaluated in
// order, as a joiner shows, which changes each time.
func TestConditionsOnOneText(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 31
	rng := rand.New(rand.NewPCG(seed, 0))
	vars, err := ParseJSON([]byte(`{"user":"user","tool":"tool","list":[{"role":"user"},{"role":"tool","x":1},{"role":"system"},{"role":null},{"role":1},{},{"x":"tool"},null,"user"]}`))
	require.NoError(t, err)
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	var condition func(depth int) string
	condition = func(depth int) string {
		if depth > 0 && rng.IntN(3) > 0 {
			return fmt.Sprintf(pick("(%s and %s)", "(%s or %s)", "not (%s or %s)"), condition(depth-1), condition(depth-1))
		}
		return pick("m.role == 'user'", "m.role == 'tool'", "m.role != 'tool'", "m['role'] == 'user'", "m.role == 'user'", "m.x == 'tool'", "j()", "not j()", "loop.first", "nothing.x", "m.x.y.z")
	}
	failed := 0
	for range 1500 {
		var b strings.Builder
		b.WriteString("{% set j = joiner('|') %}{% set ns = namespace(role='tool') %}{% for m in list ITEMS %}{% IF %}")
		for range rng.IntN(4) {
			b.WriteString("1{% elIF %}2")
		}
		b.WriteString(pick("3{% endif %}", "3{% else %}4{% endif %}") + "{{ j() }}{% endfor %}")
		source := strings.Replace(b.String(), "ITEMS", pick("", "[:7]", "[:3]", "[:3]", "[:3] + [ns]"), 1)
		for strings.Contains(source, "IF") {
			source = strings.Replace(source, "IF", "if "+condition(2), 1)
		}
		slow := strings.NewReplacer("'user'", "user", "'tool'", "tool").Replace(source)
		if shortcut(t, vars, source, slow) {
			failed++
		}
	}
	require.Greater(t, failed, 100, "seed %d", seed)
}

// Arithmetic and comparisons of small numbers give the results of the general code.
func TestSmallNumbers(t *testing.T) {
	kit.OneGoroutine(t)
	vars, err := ParseJSON([]byte(`{"n":3,"big":4294967296,"huge":99999999999999999999,"f":1.5,"s":"ab","list":[10,20,30,{"l":[1,2]}],"d":{"l":[1,2,3],"0":"k"},"none":null,"yes":true}`))
	require.NoError(t, err)
	operands := []string{"loop.index0", "loop.index", "1", "-1", "two", "vast", "ns.n", "n", "big", "huge", "f", "s", "yes", "none", "s.nothing", "list|length", "d.l|length", "d|count", "s|length", "nothing", "ns.nothing", "d.nothing|length", "9223372036854775807"}
	failed := 0
	check := func(e string) {
		const source = "{%% set ns = namespace(n=7) %%}{%% set two = 1 + 1 %%}{%% set vast = 99999999999999999999 %%}{%% for m in list %%}{{ %s }};{%% endfor %%}"
		slow := strings.NewReplacer("loop.index0", "(loop.index0|default(0))", "loop.index ", "(loop.index|default(0)) ", "ns.n ", "(ns.n|default(0)) ", "two", "(two|default(0))", "|length", "|default([])|length", "1 ", "(1|default(0)) ")
		if shortcut(t, vars, fmt.Sprintf(source, e), fmt.Sprintf(source, slow.Replace(e+" "))) {
			failed++
		}
	}
	for k, a := range operands {
		for i, b := range operands {
			if (i+k)%3 != 0 {
				continue
			}
			check(a + " - " + b)
			check(a + " + " + b)
			check(a + " + 1 - " + b)
			for _, op := range []string{"<", "<=", ">", ">=", "==", "!=", "in"} {
				check(a + " " + op + " " + b)
			}
			check("list[" + a + " - " + b + " ]")
			check("s[" + a + " + " + b + " ]")
		}
		check("d[" + a + " - 1 ].x")
		check("0 < " + a + " < 3")
	}
	require.Greater(t, failed, 100)
}

// Loop objects and namespaces are reused unless something keeps them.
func TestMemoryIsNotSharedByMistake(t *testing.T) {
	vars, err := ParseJSON([]byte(`{"l":[1,2,3],"once":[1]}`))
	require.NoError(t, err)
	for _, row := range []struct{ source, want string }{ // as printed by jinja2 3.1.6
		{"{% set ns = namespace() %}{% for a in l %}{% if loop.first %}{% set ns.l = loop %}{% endif %}{% for b in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{{ ns.l.index0 }},{% endfor %}{{ ns.l.last }}", "12310,12321,12332,True"},
		{"{% set ns = namespace() %}{% for a in l %}{% set outer = loop %}{% for b in l %}{{ outer.index }}{{ loop.index }}{% set ns.l = outer %}{% endfor %}{% endfor %}{% for a in l %}{{ ns.l.index }}{{ loop.index }}{% endfor %}", "111213212223313233313233"},
		{"{% set ns = namespace() %}{% for a in l %}{% set ns.m = loop.changed %}{% endfor %}{% for b in l %}{{ ns.m(1) }}{{ loop.revindex }}{% endfor %}", "True3False2False1"},
		{"{% for a in l %}{% macro m() %}{{ loop.index }}{% endmacro %}{{ m() }}{% for b in once %}{{ loop.index }}{{ m() }}{% endfor %}{% endfor %}", "111212313"},
		{"{% set ns = namespace() %}{% for a in once %}{% with x = loop %}{% set ns.l = x %}{% endwith %}{% endfor %}{% for a in l %}{{ loop.index }}{{ ns.l.index }}{% endfor %}", "112131"},
		{"{% for a in l %}{{ loop.index }}{% for b in l %}{% if loop.index == 2 %}{% break %}{% endif %}{{ loop.index }}{% endfor %}{% else %}{% endfor %}{% for b in l %}{{ loop.index }}{% endfor %}", "112131123"},
		{"{% set ns = namespace() %}{% for a in once %}{% set ns.m = loop.changed %}{% endfor %}{% for b in l %}{{ loop.changed(1) }}{{ ns.m(1) }}{% endfor %}", "TrueTrueFalseFalseFalseFalse"},
		{"{% set ns = namespace() %}{% for a in once %}{% macro m() %}{{ loop.index }}{% endmacro %}{% set ns.m = m %}{% endfor %}{% for a in l %}{{ loop.index }}{{ ns.m() }}{% endfor %}", "112233"},
		{"{% set it = ['', 'a']|map('default', boolean=true, default_value='c') %}{% set d = dict(boolean=false, default_value='z') %}{{ it|list }}", "['c', 'a']"},
		{"{% set it = [1, 2, 3, 4]|select('divisibleby', num=2) %}{% set d = dict(num=3) %}{{ it|list }}", "[2, 4]"},
		{"{% set ns = namespace() %}{{ ns.a is defined }}{% set ns.a = 1 %}{{ ns.a }}", "False1"},
		{"{% set all = namespace(l=[]) %}{% for i in range(300) %}{% set all.l = all.l + [namespace(i=i, j=namespace())] %}{% endfor %}{{ all.l|map(attribute='i')|sum }}{{ all.l[0].i }}{{ all.l[299].j.x is defined }}", "448500False"},
		{"{% set a = namespace(x=namespace(y=1), z=dict(k=namespace(y=2))) %}{{ a.x.y }}{{ a.z.k.y }}", "12"},
		{"{{ ['b', 'a']|map('default', boolean=true, default_value='c')|join(sep=dict(a=namespace(x=1)).a.x|string, d='-') if false else ['', 'a']|map('default', boolean=true, default_value='c')|list }}", "['c', 'a']"},
		{"{% macro m(a, b=2) %}{{ a }}{{ b }}{{ kwargs }}{% endmacro %}{{ m(a=m(a=1, b=namespace(x=5).x, c=3), b=m(4, d=namespace(y=6).y)) }}", "15{'c': 3}42{'d': 6}{}"},
	} {
		tmpl, err := Compile(row.source, Options{})
		require.NoError(t, err, row.source)
		for range 3 {
			r, err := tmpl.RenderVars(t.Context(), vars, Input{})
			require.NoError(t, err, row.source)
			require.Equal(t, row.want, r.Text, row.source)
		}
	}
}
