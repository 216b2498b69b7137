package chat

import (
	"math/rand/v2"
	"testing"

	"github.com/turnpack/turnpack/internal/kit"
)

// Programs of random lines render growing conversations as they render them alone.
func TestGrowingRandomLines(t *testing.T) {
	kit.OneGoroutine(t)
	lines := []string{
		"{% set a = messages %}", "{% set b = messages[1:] %}", "{% set b = a[1:] %}", "{% set a = b %}", "{% set n = messages|length %}", "{% set n = 3 %}", "{% set c = messages[0].content %}", "{% set c = messages[2].role ~ c %}",
		"{% set ns = namespace(k=n, s='') %}", "{% set ns.k = 5 %}", "{% set ns.s = ns.s ~ messages[1].role %}", "{% set o = ns %}", "{% set o.s = 'o' %}", "{{ ns.k }}{{ o.s }}", "{{ c }}", "{{ n }}", "{{ b|length }}", "{{ a[0].role }}{{ b[1].role }}",
		"{% macro f(v) %}{{ v }}{{ c }}{{ n if false else 1 }}{% endmacro %}", "{{ f(1) if f }}", "{{ f(messages|length) if f }}", "{% set g = f %}{{ g(c) if g }}", "{% set cy = cycler('p', 'q') %}", "{{ cy.next() if cy }}", "{% set it = b|map(attribute='role') if b else [] %}{{ it|first }}",
		"{% if messages|length > 3 %}L{% set n = 9 %}{% else %}S{{ c }}{% endif %}", "{% if b %}{{ b[0].role }}{% set b = b[1:] %}{% elif a %}A{% endif %}", "{% if n is odd %}{% set ns = namespace(k=1) %}{% endif %}", "{{ tools|length if tools else 'none' }}", "{% for t in tools or [] %}{{ t.function.name }}{% set n = 1 %}{% endfor %}",
		"{% for m in messages %}{% if m.role == 'user' %}{% set ns.k = loop.index0 %}{% endif %}{% endfor %}", "{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set ns.s = m.content %}{% break %}{% endif %}{% endfor %}", "{% for m in b or [] %}{{ m.role[0] }}{{ ns.k }}{{ c }}{% endfor %}", "{% for m in a or messages %}{{ loop.last }}{{ n }}{% set ns.s = ns.s ~ 'x' %}{% endfor %}{{ ns.s }}",
		"{% for i in range(b|length) %}{{ b[i].role[0] }}{% endfor %}", "{% set t %}{{ c }}{{ n }}{% endset %}{{ t }}", "{% generation %}{{ c }}{% endgeneration %}", "{% with c = 'w' %}{{ c }}{{ n }}{% for m in messages %}{{ c }}{% endfor %}{% endwith %}", "{% set b, n = messages[1:], 2 %}", "{{ messages[-1].role }}", "{{ b is sameas a }}{{ ns is sameas o }}", "{{ add_generation_prompt }}",
		"{% for m in messages %}{% for k in b or [] %}{% if k.role == m.role %}{% set ns.k = ns.k ~ 'h' %}{% endif %}{% endfor %}{% endfor %}{{ ns.k }}",
		"{% set d = {'l': b, 'n': n} %}", "{{ d.n }}{{ d.l|length }}", "{% set ns.l = b %}", "{{ ns.l|length }}", "{% for m in ns.l or [] %}{{ m.role }}{% endfor %}", "{% set b = ns.l or messages %}", "{% set d = namespace(l=b) %}", "{% set n = n + 1 %}", "{% set n = b|length - 1 %}", "{% if n > 2 %}{{ n }}{% endif %}",
	}
	const seed, templates = 3, 100
	rng := rand.New(rand.NewPCG(seed, 0))
	for range templates {
		source := "{% set ns = namespace(k=0, s='') %}{% set o = ns %}{% set c = 'c' %}{% set n = 0 %}"
		for range 2 + rng.IntN(9) {
			source += lines[rng.IntN(len(lines))]
		}
		growsAsRendered(t, source+"{% for m in messages %}{{ m.role[0] }}{% endfor %}")
	}
}
