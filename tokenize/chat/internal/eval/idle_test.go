package eval

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/syntax"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// outcome returns the output of the program, or its failure.
func outcome(t *testing.T, p *Program, work int64) (text string) {
	limits := rt.Limits{Limits: value.Limits{Bytes: 1 << 16, Items: 1 << 12, IntBytes: 1 << 10, Depth: 50, Work: work, Memory: 1 << 24}, Output: 1 << 16, Macros: 20, Range: 1 << 12}
	items := &value.List{}
	for i := range 6 {
		d := value.NewDict(1)
		d.SetString("role", value.Lit([]string{"user", "tool", "assistant"}[i%3]))
		items.Items = append(items.Items, d)
	}
	vars := map[string]value.Value{"l": items, "t": value.NewBool(true), "n": value.Nil}
	failure := p.Run(t.Context(), Input{Vars: func(name string) value.Value { return vars[name] }, Now: time.Now, Limits: &limits},
		func(out *Output) { text = string(out.Text.B) })
	if failure != nil {
		text = fmt.Sprint(failure.Msg, " at ", failure.Pos)
	}
	return text
}

// eachLoop calls f for all loops of a body.
func eachLoop(body []stmt, f func(*forStmt)) {
	for _, s := range body {
		switch s := s.(type) {
		case *forStmt:
			f(s)
			eachLoop(s.body, f)
			eachLoop(s.els, f)
		case *ifStmt:
			for _, b := range s.bodies {
				eachLoop(b, f)
			}
			eachLoop(s.els, f)
		}
	}
}

func compile(t *testing.T, source string) *Program {
	t.Helper()
	body, err := syntax.Parse(source, 100)
	require.NoError(t, err, source)
	p, err := Compile(body)
	require.NoError(t, err, source)
	return p
}

// Loops that end early because the rest can do nothing have the output and the failures of loops that run in full.
func TestIdleLoopsAsInFull(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 22))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	test := func() string {
		atom := func() string {
			return pick("ns.a", "ns.b", "ns.c", "not ns.a", "not ns.b", "i", "i.role == 'tool'", "i.role != 'user'", "x", "t", "n", "n.x", "u", "u.x", "true", "ns.a.x", "loop.first", "l[0].role == 'user'", "y")
		}
		s := atom()
		for rng.IntN(2) == 0 {
			s += pick(" and ", " or ") + atom()
		}
		return pick(s, s, "not ("+s+")")
	}
	var body func(depth int) string
	body = func(depth int) string {
		var b strings.Builder
		for range rng.IntN(3) {
			b.WriteString(pick("{% set ns.a = true %}", "{% set ns.b = not ns.b %}", "{% set ns.c = i %}", "{% set x = i %}", "{{ i }},", "{% break %}", "{% continue %}", "{% set ns.a = x %}",
				"{% set ns = namespace(a=ns.b, b=t, c=n) %}", "{% set ns.c = k %}", "{% set y = 1 %}{% set ns.c = y %}", "{% macro x() %}m{{ i }}{% endmacro %}{% set ns.c = x %}"))
			if depth > 0 && rng.IntN(3) == 0 {
				b.WriteString("{% if " + test() + " %}" + body(depth-1) + "{% endif %}")
			}
		}
		return b.String()
	}
	idle, stopped := 0, 0
	for range 6_000 {
		var b strings.Builder
		b.WriteString("{% set ns = namespace(a=" + pick("t", "false", "n") + ", b=" + pick("t", "false") + ", c=" + pick("n", "l", "0") + ") %}")
		head := "{% for i in " + pick("l", "range(5)", "range(3, -1, -1)", "l[::-1]", "l|map(attribute='role')", "l|map('int')|select", "'abc'", "l[0]", "[]", "[1, u, 0]") + pick("", "", "", " if "+test()) + " %}"
		numbers := pick("", "", "{% set k = (l|length - 1) - loop.index0 %}", "{% set k = 3 - loop.index %}{% set q = 1 + 2 %}", "{% set k = u + loop.index0 %}", "{% set k = 'a' + loop.index0 %}", "{% set k = l|length %}{% set k = t + loop.index %}", "{% set k = i %}", "{% set k = l|length // loop.index0 %}")
		b.WriteString(head + numbers + "{% if " + test() + " %}" + pick(body(1), body(1), "") + pick("", "", "{% elif "+test()+" %}"+body(1), "{% else %}"+body(0)) + "{% endif %}" + pick("", "", "", " ", "{% set x = 2 %}"))
		b.WriteString(pick("", "{% else %}none") + "{% endfor %}|{{ ns.a }}|{{ ns.b }}|{{ ns.c }}|{{ i }}|{{ x }}|{{ y }}")
		source := b.String()
		p, full := compile(t, source), compile(t, source)
		has := false
		eachLoop(p.root.body, func(s *forStmt) { has = has || s.idle != nil })
		eachLoop(full.root.body, func(s *forStmt) { s.idle = nil })
		want := outcome(t, full, 1<<30)
		got := outcome(t, p, 1<<30)
		require.Equal(t, want, got, source)
		if has {
			idle++
			if !strings.Contains(got, "undefined") && strings.Contains(got, "|") {
				stopped++
			}
		}
	}
	t.Logf("%d loops with a condition, %d of them written", idle, stopped)
	require.Greater(t, idle, 600)
	require.Greater(t, stopped, 400)
}

// Each search for a neighbour of an item takes as many passes as the neighbour is away.
func TestIdleLoopsEnd(t *testing.T) {
	for _, source := range []string{
		"{% set ns = namespace(f=false) %}{% for i in range(4000) %}{% if not ns.f %}{% set ns.f = true %}{% endif %}{% endfor %}",
		"{% set ns = namespace(f=false) %}{% for i in range(4000) %}{% if ns.f %}{% elif i > 1 %}{% set ns.f = true %}{% endif %}{% endfor %}",
		"{% set ns = namespace(f=false) %}{% for i in range(4000) %}{% set j = 4000 - loop.index0 %}{% if not ns.f %}{% set ns.f = j %}{% endif %}{% endfor %}",
		"{% set ns = namespace(f=true) %}{% for i in range(4000) %}{% if ns.f and i > 1 %}{% set ns.f = false %}{% endif %}{% endfor %}",
	} {
		got := outcome(t, compile(t, source), 3000)
		require.Empty(t, got, source)
	}
}
