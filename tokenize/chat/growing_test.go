package chat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// checkGrowing renders the first n messages in both ways and compares.
func checkGrowing(t *testing.T, g *Growing, n int, last *Result, note string) *Result {
	t.Helper()
	want, wantErr := g.t.Render(t.Context(), g.c.Prefix(n), g.in)
	got, kept, err := g.Render(t.Context(), n)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error(), note)
		return nil
	}
	require.NoError(t, err, note)
	require.Equal(t, want.Text, got.Text, note)
	require.True(t, slices.Equal(want.runs, got.runs), note)
	require.True(t, slices.Equal(want.Extents, got.Extents), note)
	require.True(t, slices.Equal(want.Generation, got.Generation), note)
	if last != nil {
		require.LessOrEqual(t, kept, len(commonOf(want.Text, last.Text)), note)
		require.Equal(t, spansUpTo(want, kept), spansUpTo(last, kept), note)
	}
	return want
}

func commonOf(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// spansUpTo are the origins of the first n bytes.
func spansUpTo(r *Result, n int) []Span {
	var out []Span
	for s := range r.Spans() {
		if s.Start >= n {
			break
		}
		if s.End > n {
			s.End, s.FieldEnd = n, 0
		}
		out = append(out, s)
	}
	return out
}

func longConversation(t *testing.T, rng *rand.Rand, turns int, lone bool) *Conversation {
	t.Helper()
	tools := Null()
	if rng.IntN(2) == 0 {
		tools = someTools(2)
	}
	c, err := NewConversation(List(longMessages(rng, turns, lone)...), tools, Null(), ConversationOptions{})
	require.NoError(t, err)
	return c
}

// longMessages draws turns of all kinds: questions in between, reasoning,
// tool calls and their results, which all have a name, or some, empty texts.
func longMessages(rng *rand.Rand, turns int, lone bool) (list []Value) {
	m := func(k string, v Value) Member { return Member{k, v} }
	text := func() Value {
		words := []string{"look", " at", "\n", "the files", "</think>", "<think>", "<tool_response>", "", " "}
		s := ""
		for range rng.IntN(5) {
			s += words[rng.IntN(len(words))]
		}
		return String(s)
	}
	if rng.IntN(2) == 0 {
		list = append(list, Object(m("role", String("system")), m("content", text())))
	}
	list = append(list, Object(m("role", String("user")), m("content", text())))
	named := rng.IntN(2) == 0
	for k := range turns {
		reply := []Member{m("role", String("assistant")), m("content", text())}
		if rng.IntN(3) == 0 {
			reply = append(reply, m("reasoning_content", text()))
		}
		id := fmt.Sprintf("call%05d", k)
		call := rng.IntN(2) == 0 || lone
		if call {
			fn := Object(m("name", String("bash")), m("arguments", Object(m("command", text()))))
			reply = append(reply, m("tool_calls", List(Object(m("id", String(id)), m("type", String("function")), m("function", fn)))))
		}
		list = append(list, Object(reply...))
		if call {
			result := []Member{m("role", String("tool")), m("content", text()), m("tool_call_id", String(id))}
			if named || rng.IntN(2) == 0 {
				result = append(result, m("name", String("bash")))
			}
			list = append(list, Object(result...))
		}
		if !lone && (!call || rng.IntN(4) == 0) {
			list = append(list, Object(m("role", String("user")), m("content", text())))
		}
	}
	return list
}

// Whatever prefixes are rendered in whatever order, each is what Render gives.
func TestGrowingIsRender(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 11
	k, n := uint64(0), 0
	for name, tmpl := range kitTemplates(t) {
		rng := rand.New(rand.NewPCG(seed, k))
		k++
		for j := range 6 {
			c := longConversation(t, rng, 12, j%3 == 0)
			for _, prompt := range []bool{true, false} {
				g := tmpl.Growing(c, Input{AddGenerationPrompt: prompt, Now: kitClock})
				var last *Result
				for i := 0; i <= c.Len(); i++ {
					to := i
					if j >= 3 && rng.IntN(3) == 0 {
						to = rng.IntN(c.Len() + 1)
					}
					last = checkGrowing(t, g, to, last, fmt.Sprintf("%s, seed %d, conversation %d, prompt %v, %d messages", name, seed, j, prompt, to))
					n++
				}
			}
		}
	}
	require.Greater(t, n, 10_000)
}

// A rendering that went wrong on the way is found, and one that failed is none.
func TestGrowingChecksItself(t *testing.T) {
	tmpl, err := Compile("{% for m in messages %}{% if m.content == 'no' %}{{ raise_exception('no') }}{% endif %}<{{ m.content }}>{% endfor %}", Options{})
	require.NoError(t, err)
	m := func(text string) Value {
		return Object(Member{"role", String("user")}, Member{"content", String(text)})
	}
	c, err := NewConversation(List(m("a"), m("b"), m("no")), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	grow := func(to ...int) *Growing {
		g := tmpl.Growing(c, Input{})
		for _, n := range to {
			_, _, err := g.Render(t.Context(), n)
			require.Equal(t, n == 3, err != nil)
		}
		return g
	}
	require.NoError(t, grow(1, 2).Check(t.Context()))
	require.NoError(t, grow(1, 2, 3).Check(t.Context()))
	require.NoError(t, grow(1, 3, 2).Check(t.Context()))
	for _, spoil := range []func(g *Growing){
		func(g *Growing) { g.trace.Text[1]++ },
		func(g *Growing) { g.trace.Runs[0].F = g.trace.Runs[1].F },
		func(g *Growing) { g.trace.Messages[1].Start++ },
	} {
		g := grow(1, 2)
		spoil(g)
		require.ErrorIs(t, g.Check(t.Context()), rollout.KindInternal)
	}
}

// steadyConversation has the same turn again and again.
func steadyConversation(t *testing.T, kind string, turns int) *Conversation {
	t.Helper()
	m := func(k string, v Value) Member { return Member{k, v} }
	list := []Value{Object(m("role", String("user")), m("content", String("task")))}
	for k := range turns {
		reply, next := []Member{m("role", String("assistant")), m("content", String("reply"))}, []Member{m("role", String("user"))}
		switch kind {
		case "reasoning":
			reply = append(reply, m("reasoning_content", String("so")))
		case "tools":
			id := m("id", String(fmt.Sprintf("call%05d", k)))
			fn := Object(m("name", String("bash")), m("arguments", Object(m("command", String("ls")))))
			reply = append(reply, m("tool_calls", List(Object(id, m("type", String("function")), m("function", fn)))))
			next = []Member{m("role", String("tool")), m("tool_call_id", id.Value)}
		}
		list = append(list, Object(reply...), Object(append(next, m("content", String("seen")))...))
	}
	c, err := NewConversation(List(list...), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	return c
}

// What is left out counts against the limits as if it were done.
func TestGrowingKeepsLimits(t *testing.T) {
	const seed = 12
	failed := 0
	for _, name := range []string{"qwen3", "llama3_1", "glm4moe", "gptoss", "deepseekv3"} {
		source := kitTemplate(t, name).Source()
		for k, limits := range []Limits{{Steps: 300}, {Steps: 700}, {Output: 500}, {Output: 900}} {
			tmpl, err := Compile(source, Options{Name: name, Limits: limits})
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(seed, uint64(k)))
			for j := range 4 {
				c := longConversation(t, rng, 12, j%2 == 0)
				g := tmpl.Growing(c, Input{AddGenerationPrompt: j < 2, Now: kitClock})
				var last *Result
				for n := range c.Len() + 1 {
					if last = checkGrowing(t, g, n, last, fmt.Sprintf("%s, %+v, seed %d, conversation %d, %d messages", name, limits, seed, j, n)); last == nil {
						failed++
					}
				}
			}
		}
	}
	require.Greater(t, failed, 100)
}

// The prompts of a conversation take steps of the program in its length: twice
// the turns, twice the steps.
func TestGrowingIsLinear(t *testing.T) {
	kit.OneGoroutine(t)
	n := 0
	for name, tmpl := range kitTemplates(t) {
		for _, kind := range []string{"text", "reasoning", "tools"} {
			var steps [2]int
			var err error
			for k, turns := range []int{40, 80} {
				c := steadyConversation(t, kind, turns)
				prompts, answers := tmpl.Growing(c, Input{AddGenerationPrompt: true, Now: kitClock}), tmpl.Growing(c, Input{Now: kitClock})
				for i := 1; i < c.Len() && err == nil; i += 2 {
					if _, _, err = prompts.Render(t.Context(), i); err == nil {
						_, _, err = answers.Render(t.Context(), i+1)
					}
					steps[k] += prompts.trace.Steps + answers.trace.Steps
				}
			}
			if err != nil { // it refuses such turns
				continue
			}
			n++
			require.LessOrEqual(t, float64(steps[1]), 2.1*float64(steps[0]), "%s, %s: %v steps", name, kind, steps)
		}
	}
	require.Greater(t, n, 190)
}

// Templates that do what makes leaving out unsafe.
func TestGrowingSeesWhatPassesRead(t *testing.T) {
	kit.OneGoroutine(t)
	loop := func(body string) string { return "{% for m in messages %}" + body + "{% endfor %}" }
	for _, source := range []string{
		loop("{{ loop.length }}"), loop("{{ loop.revindex0 }}"), loop("{{ loop.last }}{{ m.content }}"), loop("{{ loop.nextitem.content }}|"),
		loop("{{ loop }}"), loop("{{ loop|length }}"), loop("{{ messages|length }}"), loop("{{ messages|length - 1 == loop.index0 }}"),
		loop("{{ 3 < messages|length }}{{ messages|length > loop.index + 2 }}{{ messages|length != 5 }}{{ messages|length <= 4 }}{{ 4.5 >= messages|length }}"),
		loop("{{ messages[-1].content }}"), loop("{{ messages[loop.index].content }}|"), loop("{{ messages[loop.index0 - 1].role }}"), loop("{{ messages[3].content }}"),
		loop("{{ (messages|last).content }}"), loop("{{ messages[1:]|length }}"), loop("{% for x in messages %}{{ x.content }}{% endfor %}"),
		loop("{% for x in messages[loop.index:] %}{{ x.role }}{% break %}{% endfor %}"), loop("{{ messages is defined }}{{ messages|tojson|length }}"),
		"{% set n = messages|length %}" + loop("{{ n > loop.index }}{{ n - 1 == loop.index0 }}"),
		"{% set n = messages|length %}" + loop("{% set n = 3 %}{{ n }}") + "{{ n }}",
		"{% set ns = namespace(n=0) %}" + loop("{% set ns.n = ns.n + 1 %}{{ ns.n }}") + "{{ ns.n }}{{ ns }}",
		"{% set ns = namespace() %}" + loop("{% set ns.n = (ns.n or '') ~ m.role[0] %}{{ ns.n }}"),
		"{% set ns = namespace(x=messages|length) %}" + loop("{{ ns }}"), "{% set ns = namespace(x=messages|length) %}" + loop("{{ ns['x'] }}"),
		"{% set ns = namespace(l=[]) %}" + loop("{% set ns.l = ns.l + [m.role] %}") + "{{ ns.l|join(',') }}",
		"{% set ns = namespace(l=none) %}" + loop("{% if ns.l %}{{ ns.l.c }}{% endif %}{% set ns.l = namespace(c=m.content) %}"),
		"{% set ns = namespace(l=none) %}" + loop("{% if ns.l %}{{ ns.l.index }}{% endif %}{% set ns.l = loop %}"),
		"{% set ns = namespace(f=none) %}" + loop("{% macro f() %}{{ m.content }}{% endmacro %}{% if ns.f %}{{ ns.f() }}{% endif %}{% set ns.f = f %}"),
		"{% set c = cycler('a', 'b', 'c') %}" + loop("{{ c.next() }}"), "{% set j = joiner('-') %}" + loop("{{ j() }}{{ m.role }}"),
		"{% set it = messages|map(attribute='role') %}" + loop("{% for r in it %}{{ r }}{% break %}{% endfor %}"),
		loop("{{ m.role }}{% for x, l in loop %}{{ x.role }}{{ l.index }}{% break %}{% endfor %}"), "{% for m in messages[::-1] %}{% for x, l in loop %}{{ x.role }}{% break %}{% endfor %}{% endfor %}",
		loop("{% filter length %}{{ m.role }}{% endfilter %}"), "{% set ns = namespace(_a=messages|length) %}" + loop("{{ ns._a }}"),
		loop("{{ loop.changed(m.role == 'system') }}"), "{% macro g() %}{{ messages|length }}{% endmacro %}{% macro f() %}{% for m in messages %}{{ g() }}{% endfor %}{% endmacro %}{{ f() }}",
		"{{ messages[-1].role }}" + loop("{{ m.content }}"), "{% autoescape messages|length > 4 %}" + loop("{{ m.content }}") + "{% endautoescape %}",
		"{% if messages|length is odd %}{% set ns = namespace(a=1) %}{% else %}{% set ns = namespace(b=1) %}{% endif %}" + loop("{{ ns.a }}|{{ ns.b }}"),
		"{% set ns = namespace(a=1) %}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set ns.b = 1 %}{% elif not ns.b %}{% set ns.a = ns.a + 1 %}{% endif %}{% endfor %}{{ ns.a }}",
		"{% for m in messages[::-1] %}{{ m.role }}{% endfor %}", "{% set ns = namespace(a='') %}{% for m in messages[::-1] %}{% if loop.index0 == 2 %}{% set ns.a = m.role %}{% endif %}{% endfor %}{{ ns.a }}",
		"{% set ns = namespace(a='') %}{% for m in messages[::-1] %}{% set i = loop.index0 %}{% if i == 2 %}{% set ns.a = m.role %}{% endif %}{% endfor %}{{ ns.a }}",
		"{% set first = messages[0].content %}" + loop("{{ first[loop.index0:loop.index] }}"), loop("{{ 'x' * loop.index }}{{ 'y' * (messages|length) }}"),
		"{% set ns = namespace(seen=false) %}{% for m in messages %}{% if m.role == 'tool' %}{% set ns.seen = true %}{% endif %}{% endfor %}" + loop("{{ ns.seen }}"),
		loop("{% set ns = namespace(seen=false) %}{% for x in messages[loop.index:] %}{% if x.role == 'tool' %}{% set ns.seen = true %}{% endif %}{% endfor %}{{ ns.seen }}"), loop("{{ loop.cycle('a', 'b') }}"), loop("{% if m.role == 'tool' %}{% break %}{% endif %}{{ m.role }}"),
		loop("{% if m.role == 'user' %}{% continue %}{% endif %}{{ m.role }}") + "|",
		"{% for m in messages %}{% if m.role == 'assistant' %}{% continue %}{% endif %}{% else %}none{% endfor %}",
		"{% set last = messages[-1].role %}" + loop("{{ last }}{{ m.role }}"), "{% if messages|length > 4 %}long{% endif %}" + loop("{{ m.role }}"),
		"{% for k in range(2) %}{% for m in messages %}{{ k }}{{ m.role }}{{ loop.last }}{% endfor %}{% endfor %}",
		"{% macro f(x) %}{% for m in x %}{{ m.role }}{{ tail }}{{ messages|length }}{% endfor %}{% endmacro %}{% set tail = messages|length %}{{ f(messages) }}{{ f(messages[1:]) }}",
		"{% set list = messages[1:] %}{% for m in list %}{{ m.role }}{{ list[loop.index].role }}{{ loop.last }}{% endfor %}",
		"{% for m in messages + [{'role': 'end', 'content': messages|length}] %}{{ m.role }}{{ m.content }}{% endfor %}",
		"{% for m in messages %}{% set x = add_generation_prompt and loop.last %}{{ x }}{% endfor %}",
		"{% set ns = namespace(at=-1, open=true) %}{% for m in messages[::-1] %}{% set i = (messages|length - 1) - loop.index0 %}{% if ns.open and m.role == 'user' %}{% set ns.at = i %}{% set ns.open = false %}{% endif %}{% endfor %}" + loop("{{ loop.index0 > ns.at }}{{ m.role }}"),
		"{% set ns = namespace(at=-1) %}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set ns.at = loop.index0 %}{% endif %}{% endfor %}{{ ns.at }}",
		"{% set ns = namespace(at='') %}{% for m in messages[::-1] %}{% if loop.first or loop.last %}{% set ns.at = ns.at + m.role %}{% endif %}{% endfor %}{{ ns.at }}",
		"{% set ns = namespace(a=1) %}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set ns.b = 1 %}{% elif ns.b %}{% set ns.a = ns.a + 1 %}{% endif %}{% endfor %}{{ ns }}",
		"{% for m in messages[::-1] %}{{ m.role }}{{ loop.previtem.role }}{{ loop.nextitem.role }}{% endfor %}{% for m in messages[::-1] %}{% endfor %}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% break %}{% endif %}{{ loop.index }}{% else %}never{% endfor %}",
		"{% set ns = namespace(u=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.u = loop.index0 %}{% endif %}{% endfor %}{{ ns.u }}" + loop("{{ m.role }}{{ '!' if loop.index0 > ns.u }}"),
		"{% set x = '' %}" + loop("{% if x is undefined %}u{% endif %}{% set y = m.role %}{{ y }}") + "{{ y is defined }}",
		"{% set s = messages[0].content ~ messages|length %}" + loop("{{ s }}{{ m.role }}"), "{% set s = [messages|length % 2, 'a'] %}" + loop("{{ s }}{{ m.role }}"),
		loop("{% generation %}{{ m.content }}{% endgeneration %}"), loop("{% if messages|length > 7 and loop.last %}{{ raise_exception('long') }}{% endif %}{{ m.role }}"),
		"{% autoescape true %}" + loop("{{ m.content }}{{ '<b>'|safe }}") + "{% endautoescape %}", "{% block a %}" + loop("{{ m.role }}") + "{% endblock %}",
		"{% set m0 = messages[0].content %}{{ m0[:2] }}" + loop("{{ m0[2:] if loop.first else m.role }}"),
		"{{ messages|length }}" + loop("{{ m.role }}"), loop("{{ m.role }}") + loop("{{ m.content }}") + "{{ messages|length }}",
		// Loops that end where their flag is set.
		"{% set ns = namespace(f=false) %}" + loop("{% if m.role == 'tool' %}{% set ns.f = true %}{% endif %}") + "{{ ns.f }}" + loop("{{ ns.f }}{{ m.role }}"),
		"{% set ns = namespace(f=false) %}{% for m in messages[::-1] %}{% if 'tool_calls' in m %}{% set ns.f = true %}{% endif %}{% endfor %}" + loop("{{ ns.f }}{{ m.role }}"),
		loop("{% set ns = namespace(f=false) %}{% for x in messages[loop.index:] %}{% if x.role == 'user' and not x.tool_calls %}{% set ns.f = true %}{% endif %}{% endfor %}{{ ns.f }}{{ m.role }}"),
	} {
		growsAsRendered(t, source)
	}
}

// growsAsRendered checks prefixes of random conversations with a template.
func growsAsRendered(t *testing.T, source string) {
	t.Helper()
	tmpl, err := Compile(source, Options{})
	require.NoError(t, err, source)
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for j := range 8 {
		c := longConversation(t, rng, 5, j%4 == 3)
		g := tmpl.Growing(c, Input{AddGenerationPrompt: j%2 == 0, Now: kitClock})
		var last *Result
		for i := range 2 * c.Len() {
			to := min(i, c.Len())
			if j >= 4 || i > c.Len() {
				to = rng.IntN(c.Len() + 1)
			}
			last = checkGrowing(t, g, to, last, fmt.Sprintf("%s, seed %d, conversation %d, %d messages", source, seed, j, to))
		}
	}
}
