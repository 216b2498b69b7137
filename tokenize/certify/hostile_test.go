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

// A certificate renders many probes. A template that exceeds its limit on lists nested forty deep,
// each holding the same list twice, ends the certificate with one error.
func TestCertifyOfExpensiveTemplates(t *testing.T) {
	kit.OneGoroutine(t)
	const twice = "{% set ns.l = [ns.l, ns.l] %}"
	lists := func(name string) string {
		return fmt.Sprintf("{%% set ns = namespace(l=[1]) %%}{%% for i in range(40) %%}%s{%% endfor %%}{%% set %s = ns.l %%}", twice, name)
	}
	a, two := lists("a"), lists("a")+lists("b")
	for name, attack := range map[string]string{
		"==":                two + "{% set x = a == b %}",
		"in":                two + "{% set x = a in [b] %}",
		"pprint":            a + "{% set x = a|pprint %}",
		"tojson, printed":   a + "{{ a|tojson }}",
		"sort":              two + "{% set x = [a, b]|sort %}",
		"unique":            "{% set ns = namespace(l=(1,)) %}{% for i in range(40) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{% set x = [ns.l, ns.l]|unique|list %}",
		"groupby":           two + "{% set x = [{'k': a}, {'k': b}]|groupby('k') %}",
		"index":             two + "{% set x = [a].index(b) %}",
		"a text that grows": "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
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
				require.Error(t, err)
			})
			t.Logf("%8v %4d MB", used.Round(time.Millisecond), made>>20)
			require.Less(t, used, 3*time.Second, "of processor time")
			require.Less(t, made, uint64(512<<20), "bytes allocated in all")
		})
	}
}
