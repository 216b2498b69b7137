package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
	"github.com/turnpack/turnpack/tokenize/internal/origin"
)

// transcript returns n messages, with origins for their texts.
func transcript(n int) []value.Value {
	items := make([]value.Value, n)
	for i := range items {
		d := value.NewDict(3)
		d.Message = int32(i) + 1
		set := func(key, text string) {
			d.SetString(key, &value.Str{S: text, F: origin.NewField(origin.Field{Key: key, Index: -1, Message: int32(i)})})
		}
		set("role", []string{"system", "user", "tool", "assistant"}[(i*i+3*i)/2%4])
		set("content", strings.Repeat(" text "+fmt.Sprint(i), i%5))
		if i%3 == 0 {
			d.SetString("calls", &value.List{Items: []value.Value{value.Lit("c" + fmt.Sprint(i)), value.NewInt(int64(i))}})
		}
		items[i] = d
	}
	return items
}

// written is the complete result of one run.
type written struct {
	text    string
	runs    []value.Run
	extents []Extent
	gens    [][2]int
	work    int64
	ticks   int // calls of tick
}

// setting is the input of one run.
type setting struct {
	messages []value.Value
	prompt   bool
	k        value.Value
	limit    int64 // of work
}

func (s *setting) run(t *testing.T, p *Program, r *Replay, into *value.Memory) (w written) {
	limits := rt.Limits{Limits: value.Limits{Bytes: 1 << 16, Items: 1 << 12, IntBytes: 1 << 10, Depth: 50, Work: s.limit, Memory: 1 << 24}, Output: 1 << 16, Macros: 20, Range: 1 << 12}
	vars := map[string]value.Value{
		"messages": &value.List{Items: s.messages}, "add_generation_prompt": value.NewBool(s.prompt), "k": s.k,
		"tick": tick, "raise": raise,
	}
	ticks = 0
	failure := p.Run(t.Context(), Input{Vars: func(name string) value.Value { return vars[name] }, Now: func() time.Time { return time.Unix(0, 0) }, Limits: &limits, Into: into, Replay: r}, func(out *Output) {
		m := out.Text.Finish()
		if r != nil {
			r.Wrote(m)
		}
		*into = m
		work, made := out.Text.Lim.Used()
		w = written{text: string(m.B), runs: slices.Clone(m.Runs), extents: append([]Extent{}, out.Messages...), gens: append([][2]int{}, out.Text.Gens...), work: work - made}
	})
	if failure != nil {
		w.text = fmt.Sprint(failure.Msg, " at ", failure.Pos)
	}
	w.ticks = ticks
	return w
}

var ticks int

var tick = &rt.Builtin{Fn: func(*rt.Context, rt.Args) value.Value {
	ticks++
	return value.Empty
}}

var raise = &rt.Builtin{Fn: func(x *rt.Context, _ rt.Args) value.Value { return x.Failf(value.Other, "raised") }}

// Which loops have their passes replayed, and how far: a run over six messages after a run over four.
func TestWhatIsReplayed(t *testing.T) {
	all := transcript(6)
	k := &value.Str{S: "a text that is an input", F: origin.NewField(origin.Field{Key: "k", Index: -1, Message: -1})}
	for _, c := range []struct {
		name, source string
		ran          int // passes of the second run
	}{
		{"the message alone", "{% for m in messages %}{{ tick() }}<{{ m.role }}>{{ m.content }}{% endfor %}", 2},
		{"the number of the pass", "{% for m in messages %}{{ tick() }}{{ loop.index }}{{ loop.first }}{{ m.role }}{% endfor %}", 2},
		{"whether it is the last", "{% for m in messages %}{{ tick() }}{{ m.role }}{% if loop.last %}.{% endif %}{% endfor %}", 3},
		{"an input that only the pass mentions", "{% for m in messages %}{{ tick() }}{% if not loop.last and k %}{{ m.role }}{% endif %}{% endfor %}", 3},
		{"what was found before the loop", "{% set ns = namespace(n=messages|length) %}{% for m in messages %}{{ tick() }}{% if loop.index > ns.n - 3 %}late{% endif %}{% endfor %}", 5},
		{"its own variables", "{% set ns = namespace(a=1) %}{% for m in messages %}{{ tick() }}{% set n2 = namespace(a=m.role) %}{% set n2.a = n2.a + 'x' %}{{ n2.a }}{% endfor %}", 2},
		{"the first of two loops", "{% for m in messages %}{{ tick() }}{{ m.role }}{% endfor %}{% for m in messages %}{{ m.role }}{% endfor %}", 2},
		{"an end at the fourth", "{% for m in messages %}{{ tick() }}{{ m.role }}{% if loop.index == 4 %}{% break %}{% endif %}{% endfor %}", 1},
		{"other messages", "{% for m in messages %}{{ tick() }}{{ messages[0].role }}{% endfor %}", 6},
		{"a state that passes hand on", "{% set ns = namespace(a='') %}{% for m in messages %}{{ tick() }}{{ ns.a }}{% set ns.a = m.role %}{% endfor %}", 6},
		{"a macro", "{% macro f(m) %}{{ m.role }}{{ k }}{% endmacro %}{% for m in messages %}{{ tick() }}{{ f(m) }}{% endfor %}", 6},
		{"a state that a macro reads", "{% set ns = namespace(a=messages|length) %}{% macro f(m) %}{{ ns.a }}{% endmacro %}{% for m in messages %}{{ tick() }}{{ f(m) }}{% endfor %}", 6},
		{"a condition in a macro of the pass", "{% for m in messages %}{{ tick() }}{% macro f() %}{% if loop.last %}.{% endif %}{% endmacro %}{{ f() }}{% endfor %}", 6},
		{"an iterator that a condition uses up", "{% set it = messages|map(attribute='role') %}{% for m in messages %}{{ tick() }}{% if 'user' in it %}u{% endif %}{% endfor %}", 6},
		{"a loop by the name of loop", "{% for m in messages %}{{ tick() }}{% macro loop() %}{% endmacro %}{% if loop.last %}.{% endif %}{% endfor %}", 6},
		{"generation", "{% for m in messages %}{{ tick() }}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}", 6},
		{"backwards", "{% for m in messages[::-1] %}{{ tick() }}{{ m.role }}{% endfor %}", 6},
		{"an origin across passes", "{% for m in messages %}{{ tick() }}{{ k[loop.index:loop.index + 1] }}{% endfor %}", 6},
		{"an origin across the end", "{% for m in messages %}{{ tick() }}{{ m.role if loop.index < 4 else k[:3] }}{% endfor %}{{ k[3:] }}", 3},
		{"an origin across the beginning", "{{ k[:1] }}{% for m in messages %}{{ tick() }}{{ k[1:2] if loop.first else m.role }}{% endfor %}", 6},
	} {
		p, r := compile(t, c.source), &Replay{}
		s := setting{messages: all[:4], k: k, limit: 1 << 30}
		first := s.run(t, p, r, &value.Memory{})
		require.Equal(t, 4, first.ticks, c.name)
		s.messages = all
		got, want := s.run(t, p, r, &value.Memory{}), s.run(t, p, nil, &value.Memory{})
		require.Equal(t, c.ran, got.ticks, c.name)
		got.ticks, want.ticks = 0, 0
		require.Equal(t, want, got, c.name)
	}
}

// conversationTemplate returns a random template that renders messages as real templates do or, at times, as none
// does.
func conversationTemplate(rng *rand.Rand) string {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	odd := rng.IntN(3) == 0
	atom := func() string {
		if odd && rng.IntN(4) == 0 {
			return pick("x", "x is defined", "z == 1", "outer is defined", "ns.last in [1, 2]", "loop.changed(m.role)", "m == messages[-1]", "alone is defined", "u.v", "i")
		}
		return pick("m.role == 'user'", "m.role != 'tool'", "m.role == 'assistant'", "m.calls", "m.content", "m.content is string", "loop.first", "loop.last", "not loop.last", "loop.index0 > ns.last", "loop.index == ns.last",
			"loop.index0 == messages|length - 1", "messages|length > 4", "ns.seen", "ns.a", "not ns.seen", "messages[0].role == 'system'", "messages[loop.index0 - 1].role == 'tool'", "messages[loop.index0 + 1].role == 'user'",
			"loop.nextitem", "loop.previtem", "loop.revindex > 2", "loop.length > 3", "k", "k is defined", "add_generation_prompt", "y", "outer", "outer == 'o'", "'text' in m.content", "c.current == 1", "it")
	}
	test := func() string {
		s := atom()
		for rng.IntN(3) == 0 {
			s += pick(" and ", " or ") + pick(atom(), "("+atom()+pick(" and ", " or ")+atom()+")")
		}
		return pick(s, s, s, "not ("+s+")")
	}
	common := []string{"{{ m.role }}", "{{ m.content }}", "<{{ m.role }}>{{ m['content'] | trim }}\n", "{{ loop.index }}", "{{ 'a' + m.role + m.content }}", "{% set x = m.content %}", "{% set x = x ~ '!' %}", "{{ x }}", "{{ m | tojson }}", "{{ k }}",
		"{% for i in m.calls %}{{ loop.index }}{{ i }}{% if loop.last %};{% endif %}{% endfor %}", "{% set y %}{{ m.role }}{% endset %}{{ y|upper }}", "{% filter upper %}{{ m.content }}{% endfilter %}", "{% set n2 = namespace(v=m.role) %}{% set n2.v = n2.v + 'x' %}{{ n2.v }}",
		"{% macro inner(a) %}{{ a }}{{ m.role }}{% endmacro %}{{ inner(1) }}", "{{ m.role if loop.first else 'later' }}", "{{ m.content if " + test() + " else '-' }}"}
	rare := []string{"{{ ns.last }}", "{% set ns.seen = true %}", "{% set ns.a = m.role %}", "{{ loop.last }}", "{{ messages|length }}", "{{ messages[loop.index0 - 1].content }}", "{{ outer }}", "{{ near(m) }}", "{{ alone(m) }}", "{{ j() }}", "{{ c.next() }}", "{% set z = 1 %}", "{{ z }}",
		"{% break %}", "{% continue %}", "{% generation %}{{ m.content }}{% endgeneration %}", "{{ loop.cycle('a', 'b') }}", "{% for f in messages[loop.index:] %}{{ f.role }}{% endfor %}", "{{ it|first }}", "{{ strftime_now('%Y') }}", "{{ raise() }}", "{% set outer = m.role %}",
		"{{ loop }}", "{{ self }}", "{% with w = ns.last %}{{ w }}{% endwith %}", "{% call alone(m) %}{{ ns.last }}{% endcall %}", "{% for m in messages %}{{ loop.index }}{% endfor %}", "{{ messages[-1].content }}", "{% set loop2 = loop %}{{ loop2.last }}", "{% autoescape true %}{{ m.content }}{{ outer }}{% endautoescape %}"}
	var body func(depth int) string
	body = func(depth int) string {
		var b strings.Builder
		for range 1 + rng.IntN(3) {
			switch {
			case odd && rng.IntN(4) == 0:
				b.WriteString(pick(rare...))
			case depth > 0 && rng.IntN(2) == 0:
				b.WriteString("{% if " + test() + " %}" + body(depth-1) + pick("", "{% elif "+test()+" %}"+body(depth-1)) + pick("", "{% else %}"+body(depth-1)) + "{% endif %}")
			default:
				b.WriteString(pick(common...))
			}
		}
		return b.String()
	}
	var b strings.Builder
	b.WriteString("{% macro alone(a) %}[{{ a.role }}{% if a.calls %}{{ k }}{% endif %}{{ caller() if caller else '' }}]{% endmacro %}")
	b.WriteString("{% set ns = namespace(last=0, seen=false, a='') %}{% macro near(a) %}{{ ns.last }}{{ a.role }}{% endmacro %}")
	b.WriteString(pick("{% set outer = 'o' %}", "", "{% set outer = messages[0].content %}", "{% set outer = messages|length %}", "{% set z = 1 %}", "{% set m = 1 %}"))
	if odd {
		b.WriteString(pick("", "{% set x = messages[-1] %}"))
	}
	b.WriteString(pick("", "{% set j = joiner('|') %}{% set c = cycler(1, 2) %}", "{% set it = messages|map(attribute='role') %}", "{% if messages|length > 3 %}{% macro alone(a) %}other{% endmacro %}{% endif %}", "{% set loop = namespace(index=messages|length, first=true) %}"))
	b.WriteString(pick("", "{% for m in messages[::-1] %}{% set i = (messages|length - 1) - loop.index0 %}{% if not ns.seen and m.role == 'user' %}{% set ns.seen = true %}{% set ns.last = i %}{% endif %}{% endfor %}",
		"{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}", "{% for m in messages %}{{ m.role }}{% endfor %}|", "{{ messages[0].content }}"))
	over := pick("messages", "messages", "messages", "messages", "messages", "messages[1:]", "messages[:]", "messages[::-1]", "rest", "messages if m.role != 'tool'", "messages|list", "messages|rejectattr('role', 'equalto', 'tool')", "range(3)")
	if over == "rest" {
		b.WriteString("{% set rest = messages[1:] if messages[0].role == 'system' else messages %}")
	}
	loop := "{% for m in " + over + " %}{{ tick() }}" + body(2) + pick("", "", "", "", "", "{% else %}none") + "{% endfor %}"
	b.WriteString(pick(loop, loop, loop, loop, loop, "{% if k %}"+loop+"{% else %}"+loop+"{% endif %}", "{% with w = 1 %}"+loop+"{% endwith %}", "{% set all %}"+loop+"{% endset %}{{ all }}", "{% for r in range(2) %}"+loop+"{% endfor %}", "{% block b %}"+loop+"{% endblock %}", loop+"{{ ns.a }}"+loop))
	b.WriteString(pick("", "{{ ns.last }}{{ ns.a }}", "{{ messages[-1].content }}", "{% if add_generation_prompt %}<assistant>{% endif %}", "{{ x }}{{ outer }}"))
	return b.String()
}

// A run with a Replay writes the same text, origins and counted work as a run without, and fails in the same way.
func TestReplayWritesTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 26))
	all := transcript(24)
	saved, failed, total := 0, 0, 0
	templates := 1_000
	if testing.Short() {
		templates = 150
	}
	for range templates {
		source := conversationTemplate(rng)
		p, plain := compile(t, source), compile(t, source)
		r := &Replay{}
		var into [2]value.Memory
		n := 1 + rng.IntN(3)
		k := value.Value(value.Lit("kw"))
		s := setting{prompt: true}
		for i := range 8 {
			switch rng.IntN(8) {
			case 0:
				n = 1 + rng.IntN(len(all))
			case 1:
				k = []value.Value{value.Lit("kw"), value.Nil, value.NewBool(true)}[rng.IntN(3)]
			case 2:
				s.prompt = !s.prompt
			default:
				n = min(n+1+rng.IntN(3), len(all))
			}
			s.messages, s.k = all[:n:n], k
			if rng.IntN(6) == 0 { // part of the history, with a different message in it
				s.messages = append(slices.Clone(all[:n/2]), all[n/2+rng.IntN(n-n/2):]...)
			}
			s.limit = 0
			want := s.run(t, plain, nil, &value.Memory{})
			if s.limit = want.work + 1<<21; rng.IntN(9) == 0 && want.work > 1000 {
				s.limit = want.work / int64(1+rng.IntN(9)) * 9 / 10
				want = s.run(t, plain, nil, &value.Memory{})
			}
			got := s.run(t, p, r, &into[i%2])
			saved, total = saved+want.ticks-got.ticks, total+want.ticks
			if strings.Contains(want.text, "units of work") { // counts allocated text
				require.Contains(t, got.text, "units of work", source)
				failed++
				continue
			}
			want.ticks, got.ticks = 0, 0
			require.Equal(t, want, got, "%s\nrun %d, %d messages", source, i, n)
		}
	}
	t.Logf("%d of %d passes replayed, %d runs over their limit", saved, total, failed)
	require.Greater(t, saved, total/20)
	require.Greater(t, failed, templates/5)
}
