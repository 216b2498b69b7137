package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// someTools are n tools with n parameters each.
func someTools(n int) Value {
	m := func(k string, v Value) Member { return Member{k, v} }
	text := func(what string, i int) Value {
		return String(fmt.Sprintf("The %s number %d, which is described in some detail so that a model knows when to use it.", what, i))
	}
	var tools, required []Value
	var properties []Member
	for i := range n {
		name := fmt.Sprint("argument_", i)
		properties = append(properties, m(name, Object(m("type", String("string")), m("description", text("argument", i)))))
		required = append(required, String(name))
	}
	parameters := Object(m("type", String("object")), m("properties", Object(properties...)), m("required", List(required...)))
	for i := range n {
		fn := Object(m("name", String(fmt.Sprint("tool_", i))), m("description", text("tool", i)), m("parameters", parameters))
		tools = append(tools, Object(m("type", String("function")), m("function", fn)))
	}
	return List(tools...)
}

// withTools is c behind a system message of some length, with tools.
func withTools(t testing.TB, c *Conversation, n int) *Conversation {
	t.Helper()
	list := []Value{Object(Member{"role", String("system")}, Member{"content", String(strings.Repeat("You fix bugs. ", 100*n))})}
	for i, m := range c.messages.Items {
		if c.Role(i) != "system" {
			list = append(list, Value{m})
		}
	}
	c, err := NewConversation(List(list...), someTools(n), Null(), ConversationOptions{})
	require.NoError(t, err)
	return c
}

// From the third prompt on, one of a growing conversation takes as many steps of the program
// with twelve tools and a long system text as with one tool and a short one.
func TestGrowingLeavesOutTheTools(t *testing.T) {
	kit.OneGoroutine(t)
	n := 0
	for name, tmpl := range kitTemplates(t) {
		for _, kind := range []string{"text", "tools"} {
			var steps [2][]int
			for k, tools := range []int{1, 12} {
				c := withTools(t, steadyConversation(t, kind, 6), tools)
				g := tmpl.Growing(c, Input{AddGenerationPrompt: true, Now: kitClock})
				for i := 2; i <= c.Len(); i += 2 {
					if _, _, err := g.Render(t.Context(), i); err != nil { // it refuses such turns
						break
					}
					steps[k] = append(steps[k], g.trace.Steps)
				}
			}
			if len(steps[0]) < 5 {
				continue
			}
			n++
			require.Equal(t, steps[0][2:], steps[1][2:], "%s, %s", name, kind)
		}
	}
	require.Greater(t, n, 120)
}

// The third of some prompts of one message more each is made in the steps of its last message
// and of what is run each time.
func TestLinesThatAreLeftOut(t *testing.T) {
	const loop = "{% for m in messages %}{{ m.role }}{% endfor %}"
	for source, want := range map[string]int{
		loop: 3, // the pass, its output and the loop
		"{% macro f(x) %}{{ x }}{% endmacro %}{% set g = f %}{{ g(messages[0].role) }}" + loop:                                           3,
		"{% set n = namespace(a=1) %}{% set n.a = 2 %}{% if tools %}no{% else %}{% set m = n %}{{ m.a }}{% endif %}" + loop:              3,
		"{% if messages and messages[0].role == 'user' and messages|length > 1 %}{% set l = messages[1:] %}{% endif %}{{ l[0] }}" + loop: 3,
		"{% set l = messages %}{% set l = l[1:] %}{{ l[0].role }}{{ 'some' if l }}{% set l = l[1:] %}" + loop:                            3,
		"{{ messages[0].role }}{% set n = messages|length %}{{ messages[0].role }}{{ messages[1].role }}" + loop:                         4,
		"{% set c = cycler(1, 2) %}{{ c.next() }}" + loop:                                                                                3 + 4,
		"{% set n = messages[-1] %}{{ messages[0].role }}" + loop:                                                                        3 + 1,
	} {
		tmpl, err := Compile(source, Options{})
		require.NoError(t, err)
		c := steadyConversation(t, "text", 4)
		g := tmpl.Growing(c, Input{})
		for n := 4; n < 9; n++ {
			_, _, err := g.Render(t.Context(), n)
			require.NoError(t, err)
		}
		require.Equal(t, want, g.trace.Steps, source)
	}
}

// Templates that do what makes leaving out unsafe in front of their loop, or between two.
func TestGrowingSeesWhatLinesRead(t *testing.T) {
	kit.OneGoroutine(t)
	const loop = "{% for m in messages %}{{ m.role }}{{ x }}{% endfor %}"
	for _, source := range []string{
		// Objects that change, and are no namespaces.
		"{% set c = cycler('a', 'b', 'c') %}{{ c.next() }}{{ c.next() }}{{ x }}" + loop + "{{ c.next() }}",
		"{% set c = cycler('a', 'b', 'c') %}{{ messages|length }}{{ c.next() }}{{ x }}{% for m in messages %}{{ c.next() }}{% endfor %}",
		"{% set l = [cycler('a', 'b', 'c')] %}{% set d = {'c': l[0]} %}{{ d.c.next() }}{{ x }}" + loop + "{{ l[0].next() }}",
		"{% set j = joiner('-') %}{{ messages|length }}{{ j() }}{{ j() }}{{ x }}{% for m in messages %}{{ j() }}{% endfor %}",
		"{% set it = [1, 2, 3]|map('string') %}{% for k in it %}{{ k }}{% break %}{% endfor %}{{ it|join }}" + loop, "{% set n = namespace(c=cycler(1, 2, 3)) %}{{ n.c.next() }}{{ x }}" + loop + "{{ n.c.next() }}",
		"{% for m in messages[:2] %}{% set l = loop %}{% endfor %}{{ l }}" + loop, "{% set n = namespace(l=0) %}{% for k in [1, 2] %}{% set n.l = loop %}{% endfor %}{{ n.l.index }}" + loop,
		// Namespaces that are made anew, and have other names or are held by others.
		"{% set n = namespace(k=messages|length) %}{% set a = n %}{{ x }}{% for m in messages %}{% set a.k = a.k + 1 %}{{ n.k }}{% endfor %}{{ a.k }}",
		"{% set n = namespace(k=0) %}{% set n.k = messages|length %}{% set a = n %}{{ x }}{% set a.k = a.k + 1 %}{{ n.k }}" + loop + "{{ a.k }}",
		"{% set b = namespace(k=1) %}{% set a = namespace(b=b) %}{% set b.k = messages|length %}{% set y = a.b %}{{ y.k }}{{ x }}{% set y.k = 7 %}{{ b.k }}" + loop,
		"{% set b = namespace(k=1) %}{{ x }}{% if messages|length > 3 %}{% set b = namespace(k=2, l=3) %}{% endif %}{{ b }}{{ b.k }}" + loop + "{{ b.l }}",
		"{% macro f(k) %}{% set n = namespace(k=k) %}{% set n.k = n.k + 1 %}{{ n.k }}{% endmacro %}{{ f(1) }}{{ f(messages|length) }}{% set a = namespace(k=0) %}{{ f(2) }}{% for m in messages %}{% set a.k = a.k + 1 %}{{ a.k }}{% endfor %}",
		"{% set n = namespace(k='') %}{% for m in messages %}{% set n.k = n.k ~ m.role[0] %}{% endfor %}{{ n.k }}{% set n.k = '' %}{{ n.k }}" + loop + "{{ n.k }}",
		"{% set n = namespace(k=0, s='') %}{% for m in messages %}{% set n.k = n.k + 1 %}{% endfor %}{% set n.s = 'a' %}{{ n.s }}{% set n.s = 'b' %}" + loop + "{{ n.k }}{{ n.s }}",
		// Variables that are set again, or not at all, and macros that see them.
		"{% set y = messages[0].content %}{% set z = y ~ '!' %}{% set y = z ~ messages|length %}{{ z }}{% set x = y %}{{ y }}" + loop + "{{ z }}",
		"{% if messages|length > 3 %}{% set x = 1 %}{% endif %}{{ x is defined }}|{{ x }}" + loop, "{% set x = messages|length %}{% set y = 1 %}{% set x = x + y %}{% set y = x %}{{ y }}" + loop,
		"{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% set x = messages|length %}{{ f() }}{% set g = f %}{{ g() }}{% set x = 2 %}{{ g() }}{% for m in messages %}{{ f() }}{% endfor %}",
		"{% macro f(n) %}{{ caller(n) }}{% endmacro %}{% call(k) f(messages|length) %}{{ k }}{{ x }}{% endcall %}{% call(k) f(1) %}{{ k }}{% endcall %}" + loop,
		"{% set messages = messages[1:] %}{{ x }}{% set messages = messages[1:] %}{{ messages[0].content }}{{ x }}" + loop + "{{ messages|length }}",
		"{% set list = messages %}{% if list %}{{ list[0].role }}{% endif %}{% set list = list[2:] %}{% if list %}some{% else %}none{% endif %}{{ x }}{% for m in list %}{{ m.role }}{{ loop.last }}{% endfor %}",
		"{% set y = messages if messages|length > 4 else 'abcdef' %}{% set z = y[1:] %}{{ messages[0].role }}{% for m in messages %}{{ loop.first and z[0] is string }}{% endfor %}{{ z|length }}",
		"{% set y = (1, 2, messages|length) %}{% set z = y[1:] %}{{ x }}" + loop + "{{ z }}", "{% set y = messages[1:] %}{% set z = y[2:] %}{% if z|length < 3 %}{{ z[1].role }}{% endif %}{{ z|length > 1 }}{{ z[0].role }}{{ x }}" + loop,
		"{% for m in messages %}{% set y = messages[1:] %}{% set n = namespace(f=0) %}{% for k in y %}{% if k.role == 'tool' %}{% set n.f = n.f + 1 %}{% endif %}{% endfor %}{{ n.f }}{{ y|length > loop.index }}{% endfor %}",
		"{% set y = messages %}{{ x }}" + loop + "{{ y|length }}{{ y }}{{ y is sameas messages }}", "{% set y = messages[1:] %}{{ x }}" + loop + "{{ y|length }}{{ y }}{{ y is sameas messages }}",
		"{% set y = messages[1:] %}{% set z = y %}{{ x }}" + loop + "{{ y is sameas z }}{{ z[1:]|length }}",
		"{% for m in messages %}{% set y = messages %}{{ loop.first and y is sameas messages }}{% endfor %}", "{% set y = tools or 'none' %}{% set z = y %}{{ messages[0].role }}{% for t in messages|groupby('role') %}{% set z = t %}{% set w = z %}{{ w.grouper }}{% endfor %}" + loop + "{{ z }}",
		// The same text of another message, or generated in another place.
		"{% for m in messages[1:] or messages %}{{ loop.last }}{% endfor %}" + loop, "{% if messages|length > 1 %}{% generation %}a{% endgeneration %}b{% else %}a{% generation %}b{% endgeneration %}{% endif %}" + loop,
		"{% set a, b = 1, messages|length %}{{ a }}{{ x }}{{ b }}" + loop, "{% set t %}{{ messages|length }}{% endset %}{% set u %}{{ x }}-{% endset %}{{ u }}{{ t }}" + loop, "{% set t %}" + loop + "{% endset %}{{ x }}{{ t }}" + loop,
		// Text of another length, blocks and branches.
		"{{ messages|length * 3 }}{% set x = 'y' %}{{ x }}{{ x }}" + loop, "{{ '.' * (messages|length) }}{{ messages[0].content }}{{ x }}" + loop, "{{ messages[-1].content }}{% set x = messages[0].content %}{{ x }}" + loop,
		"{% if messages|length > 3 %}A{{ x }}{% if messages[0].role == 'user' %}B" + loop + "{{ x }}{% endif %}C" + loop + "{% elif messages %}D{{ x }}" + loop + "{% else %}E{{ x }}{% endif %}F{{ x }}" + loop,
		"{% if messages|length is odd %}{{ messages[0].content }}{% set x = 1 %}{% else %}{{ messages[1].role }}{% endif %}{{ x }}" + loop + "{% if messages|length is even %}{{ x }}" + loop + "{% endif %}",
		"{% if tools %}{% for t in tools %}{{ t|tojson }}{% endfor %}{{ messages|length > 4 }}{% endif %}{% if messages|length > 6 and tools %}{{ tools|length }}{% endif %}" + loop,
		"{% with n = messages|length %}{{ n }}{{ x }}" + loop + "{{ n }}{% endwith %}{{ x }}" + loop, "{% filter upper %}{{ x }}a{% endfilter %}{% filter upper %}{{ messages|length > 4 }}{% endfilter %}" + loop,
		"{% filter length %}{{ messages[0].content }}{% endfilter %}" + loop, "{% generation %}{{ messages[0].content }}{% endgeneration %}{{ x }}{% generation %}{{ messages|length }}{% endgeneration %}" + loop,
		"{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}{{ x }}" + loop, "{% for m in messages %}{% for k in messages[loop.index:] %}{% if k.role == 'tool' %}{% set x = 1 %}{% endif %}{% endfor %}{% endfor %}{{ x }}" + loop,
		"{% for k in range(messages|length) %}{{ k }}{% endfor %}{{ x }}{% for k in range(0, messages|length, 2) %}{{ k }}{% endfor %}{{ x }}" + loop, "{% for t in tools or [] %}{{ t.function.name }}{{ messages|length > 5 }}{% endfor %}" + loop,
		"{{ x }}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set x = loop.index0 %}{% endif %}{% endfor %}{{ x }}{{ messages[0].role }}{% for m in messages[::-1] %}{{ m.role }}{% break %}{% endfor %}{{ x }}" + loop,
		"{% macro f(list) %}{{ x }}{% for m in list %}{{ m.role }}{% endfor %}{{ list|length }}{% endmacro %}{{ x }}{{ f(messages) }}{{ messages[0].role }}{{ f(messages[1:]) }}{% set x = 5 %}{{ x }}{{ f([]) }}",
		// Failures.
		"{% if messages|length > 5 %}{{ raise_exception('long') }}{% endif %}{{ x }}" + loop, "{{ messages[0].content }}{{ messages[3].content.strip() }}{{ x }}" + loop, "{{ x }}{% set y = messages[2].role + '' %}{{ y }}" + loop,
		"{{ strftime_now('%Y') }}{{ add_generation_prompt }}{{ x }}" + loop, "{{ (x.y is defined) if x else 0 }}{{ self is defined }}" + loop,
	} {
		growsAsRendered(t, source)
	}
}
