package certify_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/certify"
)

// A certificate asks a template many times. What a template does at each, one that is
// never done with lists that hold each other twice, forty deep, ends all of them.
func TestCertifyOfExpensiveTemplates(t *testing.T) {
	kit.OneGoroutine(t)
	const twice = "{% set ns.l = [ns.l, ns.l] %}"
	lists := func(name string) string {
		return fmt.Sprintf("{%% set ns = namespace(l=[1]) %%}{%% for i in range(40) %%}%s{%% endfor %%}{%% set %s = ns.l %%}", twice, name)
	}
	a, two := lists("a"), lists("a")+lists("b")
	for name, attack := range map[string]string{
		"==":                two + "{% set x = a == b %}",
		"!=":                two + "{% set x = a != b %}",
		"<":                 two + "{% set x = a < b %}",
		"in":                two + "{% set x = a in [b] %}",
		"pprint":            a + "{% set x = a|pprint %}",
		"tojson":            a + "{% set x = a|tojson %}",
		"tojson, printed":   a + "{{ a|tojson }}",
		"string":            a + "{% set x = a|string %}",
		"sort":              two + "{% set x = [a, b]|sort %}",
		"unique":            "{% set ns = namespace(l=(1,)) %}{% for i in range(40) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{% set x = [ns.l, ns.l]|unique|list %}",
		"max":               two + "{% set x = [a, b]|max %}",
		"groupby":           two + "{% set x = [{'k': a}, {'k': b}]|groupby('k') %}",
		"join":              a + "{% set x = [a]|join %}",
		"%":                 a + "{% set x = '%s' % [a] %}",
		"index":             two + "{% set x = [a].index(b) %}",
		"count":             two + "{% set x = [a, a, a].count(b) %}",
		"a text that grows": "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"loops":             "{% for i in range(100000) %}{% for j in range(100000) %}{% set x = i %}{% endfor %}{% endfor %}",
		"after messages":    chatML + two + "{% set x = a == b %}",
		"for one role":      "{% for m in messages %}{% if m.role == 'tool' %}" + two + "{% set x = a == b %}{% endif %}{% endfor %}" + chatML,
		"for calls":         "{% for m in messages %}{% if m.tool_calls %}" + two + "{% set x = a == b %}{% endif %}{% endfor %}" + chatML,
		"for long history":  "{% if messages|length > 3 %}" + two + "{% set x = a == b %}{% endif %}" + chatML,
	} {
		t.Run(name, func(t *testing.T) {
			m := withTemplate(t, attack)
			var made uint64
			used := kit.LeastCPU(t, 3*time.Second, func() {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := certify.Model(t.Context(), m)
				runtime.ReadMemStats(&after)
				made = after.TotalAlloc - before.TotalAlloc
				_ = err // whether it is certified: some attacks leave most of a template as it is
			})
			t.Logf("%8v %4d MB", used.Round(time.Millisecond), made>>20)
			require.Less(t, used, 3*time.Second, "of processor time")
			require.Less(t, made, uint64(512<<20), "bytes allocated in all")
		})
	}
}
