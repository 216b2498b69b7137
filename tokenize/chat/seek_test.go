package chat

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// oddConversation has messages in which loops look for something: ids that come
// again or are no texts, calls without one, lists that are none.
func oddConversation(t *testing.T, rng *rand.Rand, n int) *Conversation {
	t.Helper()
	pick := func(list ...Value) Value { return list[rng.IntN(len(list))] }
	id := func() Value {
		if rng.IntN(8) == 0 {
			return pick(Int(1), Int(2), Bool(true), Null(), List())
		}
		return pick(String("a"), String("b"), String("c"), String("d"))
	}
	var list []Value
	for range n {
		m := []Member{{"role", pick(String("user"), String("tool"), String("assistant"), String("assistant"))}, {"content", pick(String("x"), String("y"), String(""))}}
		if rng.IntN(2) == 0 {
			m = append(m, Member{"tool_call_id", id()})
		}
		var calls []Value
		for range rng.IntN(3) {
			call := []Member{{"name", pick(String("ls"), String("cat"))}}
			if rng.IntN(6) > 0 {
				call = append(call, Member{"id", id()})
			}
			calls = append(calls, Object(call...))
		}
		switch rng.IntN(12) {
		case 0:
			m = append(m, Member{"tool_calls", pick(Int(3), String("ab"), List(String("ab")))})
		case 1, 2, 3, 4, 5:
			m = append(m, Member{"tool_calls", List(calls...)})
		}
		list = append(list, Object(m...))
	}
	c, err := NewConversation(List(list...), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	return c
}

// sameProgram renders random prefixes of random conversations, one after the other, with the first of two
// templates, and compares with the second, from the beginning each time.
func sameProgram(t *testing.T, quick, slow string) (n, failed int) {
	t.Helper()
	const seed = 21
	a, err := Compile(quick, Options{})
	require.NoError(t, err, quick)
	b, err := Compile(slow, Options{})
	require.NoError(t, err, slow)
	in := Input{Now: kitClock, Kwargs: map[string]Value{"kind": String("user")}}
	rng := rand.New(rand.NewPCG(seed, 0))
	for j := range 12 {
		c := oddConversation(t, rng, 1+rng.IntN(9))
		var last *Result
		for i := range 2 * c.Len() {
			to := min(i, c.Len())
			if j >= 6 || i > c.Len() {
				to = rng.IntN(c.Len() + 1)
			}
			note := fmt.Sprintf("%s, seed %d, conversation %d, %d messages", quick, seed, j, to)
			want, err := b.Render(t.Context(), c.Prefix(to), in)
			last, _ = a.Render(t.Context(), c.Prefix(to), in)
			require.Equal(t, err != nil, last == nil, note)
			if n++; err != nil {
				failed++
				continue
			}
			require.Equal(t, want.Text, last.Text, note)
			require.Equal(t, want.runs, last.runs, note)
		}
	}
	return n, failed
}

// A loop that looks for a message does what it does pass by pass. A list made by an
// addition is no part of the conversation, so there it is done so.
func TestSeekingIsWalking(t *testing.T) {
	kit.OneGoroutine(t)
	body := func(find string) string {
		return "{% for m in messages %}{% set id = m.tool_call_id %}{% set ns = namespace(v='-', w=0) %}" + find + "{{ m.role }}{{ ns.v }}{{ ns.w }} {% endfor %}"
	}
	n, failed := 0, 0
	for _, source := range []string{
		body("{% for x in LIST %}{% if x.role == 'tool' %}{% set ns.v = true %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.role == 'tool' %}{% set ns.v = x.content %}{% set ns.w = ns.w + 1 %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.tool_calls %}{% for c in x.tool_calls %}{% if c.id == id %}{% set ns.v = c.name %}{% set ns.w = ns.w + 1 %}{% endif %}{% endfor %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% for c in x.tool_calls %}{% if id is not none and c.id is defined and c.id == id %}{% set ns.v = c.name %}{% endif %}{% endfor %}{% endfor %}"),
		body("{% for x in LIST %}{% for c in x.get('tool_calls', []) %}{% if id == c['id'] and c.name != 'cat' %}{% set ns.v = c.name %}{% endif %}{% endfor %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.tool_call_id == id and x.role != m.role %}{% set ns.w = ns.w + 1 %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.tool_call_id == id and x.content == id %}{% set ns.w = ns.w + 1 %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.tool_call_id == id %}{% if x.content is string and 'x' in x.content %}{% set ns.w = ns.w + loop.length if loop is defined else 1 %}{% endif %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.content > 'x' %}{% set ns.w = ns.w + 1 %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.tool_call_id < 'b' %}{% set ns.w = ns.w + 1 %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if not x.tool_calls or x.role == 'user' %}{% set ns.v = ns.v ~ x.content %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.tool_call_id == ns.v %}{% set ns.v = 'a' %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if x.content == '' %}{% set ns.v = raise_exception('no') %}{% endif %}{% endfor %}"),
		body("{% if m.role == 'tool' %}{% for x in LIST %}{% if x.tool_call_id == id %}{% set ns.v = x.role %}{% endif %}{% endfor %}{% endif %}"),
		body("{% for x in LIST %}{% if x.role == 'user' %}{% set ns.w = messages|length %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if tools %}{% if x.role == 'user' %}{% set ns.v = 1 %}{% endif %}{% endif %}{% endfor %}"),
		body("{% for x in LIST %}{% if kind == x.role %}{% set ns.v = kind %}{% endif %}{% endfor %}"),
		"{% macro f(id) %}{% set ns = namespace(v='') %}{% for x in LIST %}{% for c in x.tool_calls or [] %}{% if c.id == id %}{% set ns.v = ns.v ~ c.name %}{% endif %}{% endfor %}{% endfor %}{{ ns.v }}{% endmacro %}" +
			"{% for m in messages %}{{ m.role }}{{ f(m.tool_call_id) }} {% endfor %}",
		"{% set ns = namespace(v='') %}{% for m in messages %}{% for x in LIST %}{% if x.role == 'tool' %}{% set ns.v = x.content ~ loop.index if loop is defined %}{% endif %}{% endfor %}{{ ns.v }}{% endfor %}",
		"{% set rest = messages[1:] %}{% for m in rest %}{% set id = m.tool_call_id %}{% set ns = namespace(v='') %}{% for x in rest %}{% if x.tool_call_id == id and x.tool_calls %}{% set ns.v = x.content %}{% endif %}{% endfor %}{{ m.role }}{{ ns.v }}{% endfor %}",
		"{% set rest = messages[1:] if messages|length > 4 else messages[2:] %}{% for m in messages %}{% set id = m.tool_call_id %}{% set ns = namespace(v='') %}{% for x in rest %}{% if x.tool_call_id == id %}{% set ns.v = ns.v ~ x.content %}{% endif %}{% endfor %}{{ m.role }}{{ ns.v }}{% endfor %}",
		"{% autoescape true %}" + body("{% for x in LIST %}{% if x.tool_call_id == (id ~ '')|safe %}{% set ns.v = x.content %}{% endif %}{% endfor %}") + "{% endautoescape %}",
	} {
		for _, list := range [][2]string{{"messages", "(messages + [])"}, {"messages[loop.index:]", "(messages + [])[loop.index:]"}, {"messages[1:]", "(messages + [])[1:]"}, {"messages[loop.index0 - 1:]", "(messages + [])[loop.index0 - 1:]"}} {
			if strings.Contains(list[0], "loop") && strings.Contains(source, "macro") {
				continue
			}
			a, b := sameProgram(t, strings.ReplaceAll(source, "LIST", list[0]), strings.ReplaceAll(source, "LIST", list[1]))
			n, failed = n+a, failed+b
		}
	}
	require.Greater(t, failed, 100)
	t.Logf("%d renderings, %d of them errors", n, failed)
}

// A loop that a flag has ended, and a range whose end is read as far as it goes, do
// what they do in full. With "and true" a flag is none, and a range with a step is read.
func TestFlagsAndRanges(t *testing.T) {
	kit.OneGoroutine(t)
	outer := func(find string) string {
		return "{% set n = messages|length %}{% for m in messages %}{% set ns = namespace(v='-', f=false) %}" + find + "{{ m.role }}{{ ns.v }} {% endfor %}"
	}
	const take, mark = "{% set ns.v = ns.v ~ messages[j].role ~ j %}", "{% if messages[j].role != 'tool' %}{% set ns.f = true %}{% endif %}"
	n := 0
	for _, source := range []string{
		outer("{% for j in RANGE %}{% if not ns.f ANDTRUE %}" + take + mark + "{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% if ns.f ANDTRUE %}{% elif j > 3 %}{% set ns.f = true %}{% else %}" + take + mark + "{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% if ns.f ANDTRUE %}{% else %}" + take + mark + "{% endif %}{{ ns.f }}{% endfor %}"),
		outer("{% for j in RANGE %}{% if not ns.f ANDTRUE %}" + take + mark + "{% else %}{% set ns.f = false %}{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% if not m.tool_calls ANDTRUE %}" + take + "{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% if not loop.first ANDTRUE %}" + take + "{% endif %}{% endfor %}"),
		outer("{% set l = loop %}{% for j in RANGE %}{% if not l.last ANDTRUE %}" + take + "{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% if not j.real ANDTRUE %}" + take + "{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% if not ns.f ANDTRUE %}" + take + mark + "{% endif %}{% else %}none{% endfor %}"),
		outer("{% for j in RANGE %}{{ loop.index0 }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{{ j }}{{ loop.last }}{% if messages[j].role == 'user' %}{% break %}{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% if loop.first %}{{ loop.length }}{% endif %}{% if j == 2 %}{% break %}{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{{ loop.nextitem }}{{ loop.previtem }}{% if j == 2 %}{% break %}{% endif %}{% endfor %}"),
		outer("{% for j in RANGE if j is odd %}{{ j }}{% if j == 3 %}{% break %}{% endif %}{% endfor %}"),
		outer("{% for j in RANGE %}{% for k, l in loop %}{{ k }}{% break %}{% endfor %}{% break %}{% endfor %}"),
		outer("{% if m.role == 'tool' %}{% for j in RANGE %}{{ loop }}{% break %}{% endfor %}{% endif %}"),
		// The range is the outer loop.
		"{% set ns = namespace(at=-1) %}{% set n = messages|length %}{% for j in RANGE %}{% if messages[j].role == 'user' %}{% set ns.at = j %}{% endif %}{% endfor %}{{ ns.at }}{% for m in messages %}{{ m.role }}{{ loop.index0 > ns.at }}{% endfor %}",
		"{% set n = messages|length %}{% for j in RANGE %}{{ messages[j].role }}{{ loop.last }}{{ messages[j + 1].role if not loop.last }}{% endfor %}",
		"{% set n = messages|length %}{% for j in RANGE %}{{ messages[j].role }}{% for k in range(j + 1, nSTEP) %}{{ messages[k].role }}{% break %}{% endfor %}{% endfor %}",
		"{% set n = messages|length %}{% for m in messages %}{% for j in RANGE %}{% endfor %}{% endfor %}{% for j in RANGE %}{{ messages[j].content }}{{ loop.revindex if j == 1 }}{% endfor %}",
	} {
		for _, bounds := range []string{"0, n", "0, messages|length", "1, n", "2, messages|length - 1", "-2, n - 3", "3, n - 0", "n - 2, n", "messages|length - 1, messages|length", "loop.index, n", "loop.index0 - 1, n"} {
			if strings.Contains(bounds, "loop") && !strings.Contains(source, "ns = namespace(v") {
				continue
			}
			fill := func(step, and string) string {
				return strings.NewReplacer("RANGE", "range("+bounds+step+")", "STEP", step, "ANDTRUE", and).Replace(source)
			}
			k, _ := sameProgram(t, fill("", ""), fill(", 1", "and true"))
			n += k
		}
	}
	t.Logf("%d renderings", n)
}
