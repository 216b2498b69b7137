package chat

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// hostile are templates that must reach a limit quickly and without much memory.
var hostile = []struct{ source, reason string }{
	{`{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}`, "nested loops"},
	{`{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}`, "doubling calls"},
	{`{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`, "endless calls"},
	{`{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}`, "endless recursive loop"},
	{`{{ 'a' * 10**9 }}`, "string repetition"},
	{`{{ [0] * 10**9 }}`, "list repetition"},
	{`{{ '%0100000000d'|format(1) }}`, "number width"},
	{`{{ '%100000000s' % 'a' }}`, "text width"},
	{"{% macro f() %}{{ " + strings.Repeat("-", 1900) + "f() }}{% endmacro %}{{ f() }}", "calls inside nested expressions"},
	{`{{ '%.100000000f' % 1 }}`, "precision"},
	{`{{ '{:>100000000}'.format('a') }}`, "format width"},
	{`{{ '{:,>0100000000}'.format(1) }}`, "format width of a number"},
	{`{{ 'x'.center(10**9) }}{{ 'x'.zfill(10**9) }}`, "padding"},
	{`{{ 'a'|indent(10**9) }}`, "indent"},
	{`{{ ('a\n' * 100000)|indent(10000) }}`, "indent of many lines"},
	{`{{ ('a' * 10000).replace('a', 'b' * 100000) }}`, "replace"},
	{`{{ ('\t' * 10000).expandtabs(100000) }}`, "tabs"},
	{`{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`, "doubling text"},
	{`{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`, "doubling list"},
	{`{{ [[1]]|tojson(indent=10**9) }}`, "JSON indent"},
	{`{% set ns = namespace(l=[1]) %}{% for i in range(40) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}`, "shared list as JSON"},
	{`{% set ns = namespace(l=[1]) %}{% for i in range(40) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}`, "shared list printed"},
	{`{{ 9 ** (9 ** 9) }}`, "power"},
	{`{{ 2 ** 100000000 }}`, "large power"},
	{`{{ range(100000)|batch(1)|list|map('join', 'x' * 100000)|join('y' * 100000) }}`, "join"},
	{`{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}`, "output"},
	{`{{ 'x'|wordwrap(1, true, 'y' * 70000000) }}`, "argument"},
}

func TestHostileTemplatesStop(t *testing.T) {
	kit.OneGoroutine(t)
	for _, h := range hostile {
		t.Run(h.reason, func(t *testing.T) {
			tmpl, err := Compile(h.source, Options{})
			require.NoError(t, err)
			start := time.Now()
			_, err = tmpl.RenderVars(t.Context(), Object(), Input{})
			assert.ErrorIs(t, err, rollout.KindLimit, h.source)
			assert.Less(t, time.Since(start), 20*time.Second)
		})
	}
}

func TestCompileLimits(t *testing.T) {
	for _, source := range []string{
		strings.Repeat("(", 300), "{{ " + strings.Repeat("(", 2500) + "1" + strings.Repeat(")", 2500) + " }}",
		"{{ " + strings.Repeat("-", 3000) + "1 }}", "{{ " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " }}", "{{ " + strings.Repeat("not ", 5000) + "1 }}",
		strings.Repeat("{% if 1 %}", 2500) + strings.Repeat("{% endif %}", 2500), strings.Repeat(" ", 2<<20+1),
	} {
		_, err := Compile(source, Options{})
		if strings.HasPrefix(source, "(") {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorIs(t, err, rollout.KindLimit, "%.30s", source)
	}
	_, err := Compile("x", Options{Limits: Limits{Work: -1, Output: -2}})
	assert.ErrorContains(t, err, "Limits.Work")
	assert.ErrorContains(t, err, "Limits.Output")
}

func TestContextStopsRendering(t *testing.T) {
	tmpl, err := Compile(`{% for i in range(100000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}`, Options{Limits: Limits{Work: 1<<31 - 1}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = tmpl.RenderVars(ctx, Object(), Input{})
	assert.ErrorIs(t, err, rollout.KindLimit)
}

func TestErrorsAreLocated(t *testing.T) {
	tmpl, err := Compile("a\n{{ é }}{{ messages[0].content.x.y }}", Options{Name: "t.jinja"})
	require.NoError(t, err)
	c, err := NewConversation(List(Object(Member{"content", String("x")})), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	_, err = tmpl.Render(t.Context(), c, Input{})
	require.ErrorIs(t, err, rollout.KindTemplate)
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	assert.Equal(t, Class("undefined"), e.Class)
	assert.Equal(t, [2]int{2, 33}, [2]int{e.Line, e.Column})
	assert.Contains(t, err.Error(), "t.jinja:2:33")
}

func TestRenderIsConcurrent(t *testing.T) {
	tmpl, err := Compile(`{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ m.content|upper }}{% endfor %}`, Options{})
	require.NoError(t, err)
	c, err := NewConversation(List(Object(Member{"content", String("a")}), Object(Member{"content", String("b")})), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				r, err := tmpl.Render(context.Background(), c, Input{})
				assert.NoError(t, err)
				assert.Equal(t, "1A2B", r.Text)
			}
		})
	}
	wg.Wait()
}

// FuzzRender requires that no template makes the engine panic or run for long, and that spans always cover the text.
func FuzzRender(f *testing.F) {
	for _, h := range hostile {
		f.Add(h.source)
	}
	for _, s := range []string{
		"{% macro f(a, b=1) %}{{ a }}{{ varargs }}{% endmacro %}{{ f(*l, **d) }}", "{%- for k, v in d.items() if v recursive -%}{{ loop(v) }}{% else %}{% endfor %}",
		"{% set x | upper %}{{ s[::-1] }}{% endset %}{{ x.split('l')[-1] ~ d|tojson(indent=1) }}", "{{ '%s{}'.format(s) % 1 }}{% generation %}{{ s|title }}{% endgeneration %}",
		"{% raw %}{{ %}{% endraw %}{# #}{{ 1 if 2 }}", "{% block a %}{{ self.a() }}{% endblock %}", "{% filter indent(2)|trim %}{% call(x) f() %}{% endcall %}{% endfilter %}",
	} {
		f.Add(s)
	}
	vars, err := ParseJSON([]byte(`{"s": "Hello <b>", "l": [1, "a", null, 2.5], "d": {"k": {"n": [1]}, "z": "x\ny"}, "n": null}`))
	require.NoError(f, err)
	limits := Limits{Work: 1 << 20, Memory: 1 << 20, Output: 1 << 16, Bytes: 1 << 16, Items: 1 << 12}
	// With a thousandth of the default work and less than the default memory, a template that exceeds these bounds is
	// charged too little.
	const mostTime, mostMemory = 500 * time.Millisecond, 64 << 20
	f.Fuzz(func(t *testing.T, source string) {
		var r *Result
		var err error
		kit.Within(t, mostTime, mostMemory, func() {
			var tmpl *Template
			if tmpl, err = Compile(source, Options{Limits: limits}); err == nil {
				r, err = tmpl.RenderVars(t.Context(), vars, Input{Now: kit.TemplateClock})
			}
		})
		if err == nil {
			checkCover(t, source, r)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,1.0,-0,1e5,"\u00e9\ud83d\ude00",null,true]}`, `[NaN,-Infinity]`, `"\ud800"`, `{"a":1,"a":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var err error
		kit.Within(t, 200*time.Millisecond+time.Duration(len(text))*time.Microsecond, 1<<20+1000*uint64(len(text)), func() {
			_, err = ParseJSON([]byte(text))
		})
		if err == nil && len(text) > 0 && strings.ContainsAny(text[:1], `{["`) {
			for i := range len(text) {
				rest := strings.TrimRight(text[:i], " \t\r\n")
				if rest == strings.TrimRight(text, " \t\r\n") {
					break
				}
				_, err := ParseJSON([]byte(text[:i]))
				assert.Error(t, err, "prefix %q", text[:i])
			}
		}
	})
}

// A run that prints large texts ends when it exceeds the output limit, not at the next check of the limits.
func TestOutputLimitEndsAtOnce(t *testing.T) {
	tmpl, err := Compile(`{% set b = 'a' * 1000000 %}{% for i in range(400) %}{{ b }}{% endfor %}`, Options{Limits: Limits{Output: 1 << 20}})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = tmpl.RenderVars(t.Context(), Object(), Input{})
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "output of more than")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "bytes allocated")
}

// Every template of the kit renders a conversation of 30 turns with tools within a hundredth of the limits, except
// for the depth of macro calls, which follows that of the tools.
func TestTemplatesStayFarBelowLimits(t *testing.T) {
	l := Limits{}.withDefaults()
	for _, p := range []*int{&l.Source, &l.Nesting, &l.Output, &l.Bytes, &l.Items, &l.Range, &l.Work, &l.Memory, &l.Integer} {
		*p /= 100
	}
	plain := agentConversation(t)
	var list []Value // with contents in parts, for templates that support nothing else
	for _, m := range plain.messages.Items {
		d := m.(*value.Dict).Clone(0)
		d.SetString("content", List(Object(Member{"type", String("text")}, Member{"text", Value{d.GetString("content")}})).v)
		list = append(list, Value{d})
	}
	parts, err := NewConversation(List(list...), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	written := 0
	for name, tmpl := range kitTemplates(t) {
		c := plain
		if strings.Contains(name, "idefics") || strings.Contains(name, "smolvlm") || strings.Contains(name, "llava") {
			c = parts
		}
		low, err := Compile(tmpl.Source(), Options{Name: name, Limits: l})
		require.NoError(t, err)
		want, refused := tmpl.Render(t.Context(), c, Input{Now: kit.TemplateClock})
		got, err := low.Render(t.Context(), c, Input{Now: kit.TemplateClock})
		if refused != nil {
			require.Error(t, err, name)
			require.Equal(t, refused.Error(), err.Error(), name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, want.Text, got.Text, name)
		written++
	}
	require.Greater(t, written, 40)
}
