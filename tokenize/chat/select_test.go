package chat

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

// placed returns the origins and extents of a rendering, with messages identified by place.
func placed(r *Result, place func(number int) int) (spans []string, extents []Extent) {
	for s := range r.Spans() {
		path := s.Field.Elements()
		if len(path) > 1 && path[0] == "messages" {
			path[1] = strconv.Itoa(place(int(s.Field.Message)))
		}
		spans = append(spans, fmt.Sprint(s.Start, s.End, path, s.Field != nil && s.Field.IsKey, s.FieldStart, s.FieldEnd, s.Exact))
	}
	for _, e := range r.Extents {
		e.Message = place(e.Message)
		extents = append(extents, e)
	}
	return spans, extents
}

// A selection renders, with the same turns, as a conversation made of its messages: with messages left out, in
// another order, and with others between them.
func TestSelectIsNewConversation(t *testing.T) {
	kit.OneGoroutine(t)
	files, err := filepath.Glob(filepath.Join(kit.Templates(t), "*.jinja"))
	require.NoError(t, err)
	// One template writes an earlier message after the name of a call; the other's markers depend on its first and
	// last message, and it fails with few messages.
	sources := []string{"{% for m in messages %}{{ m.role }}:{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% if m.tool_call_id %}{% for a in messages %}{% for c in a.tool_calls or [] %}" +
		"{% if c.id == m.tool_call_id %}{{ c.function.name }}{{ messages[0].content }}{% endif %}{% endfor %}{% endfor %}{% endif %}{{ m.content }}|{% endfor %}",
		"{% if messages|length < 5 %}{{ raise_exception('few') }}{% endif %}{% set x = messages[0].content[:3] + messages[-1].content[:3] + messages[-1].role %}" +
			"{% for m in messages %}[{{ x if m.role == 'assistant' else m.role }}]{{ m.content }}[end of {{ x }}]{% endfor %}{% if add_generation_prompt %}[{{ x }}]{% endif %}"}
	names := []string{"quotes the first", "asks both ends"}
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		sources, names = append(sources, string(src)), append(names, filepath.Base(file))
	}
	const seed = 13
	compared, fetched := 0, 0
	for k, source := range sources {
		tmpl, err := Compile(source, Options{Name: names[k]})
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		for j := range 4 {
			list := longMessages(rng, 4, j%3 == 0)
			all, err := NewConversation(List(list...), Null(), Null(), ConversationOptions{})
			require.NoError(t, err)
			var numbers []int
			var more, shown []Value
			add := func(v Value) {
				numbers, more, shown = append(numbers, len(list)+len(more)), append(more, v), append(shown, v)
			}
			for i, m := range list {
				switch rng.IntN(8) {
				case 0:
					continue
				case 1:
					add(Object(Member{"role", String("user")}, Member{"content", String("left out")}))
				case 2:
					add(list[rng.IntN(i+1)])
				}
				numbers, shown = append(numbers, i), append(shown, m)
			}
			if n := len(numbers); j%4 == 3 && n > 1 {
				i := rng.IntN(n - 1)
				numbers[i], numbers[i+1], shown[i], shown[i+1] = numbers[i+1], numbers[i], shown[i+1], shown[i]
			}
			selected, err := all.Select(numbers, more...)
			require.NoError(t, err)
			own, err := NewConversation(List(shown...), Null(), Null(), ConversationOptions{})
			require.NoError(t, err)
			if selected.linked.named(selected.Len()) {
				fetched += len(selected.linked.list)
			}
			for n := own.Len(); n >= 0; n -= 1 + rng.IntN(9) {
				for p, in := range []Input{{Now: kit.TemplateClock}, {AddGenerationPrompt: true, Now: kit.TemplateClock}} {
					note := fmt.Sprintf("%s, seed %d, conversation %d, %d messages %v, prompt %d", names[k], seed, j, n, numbers, p)
					want, wantErr := tmpl.Render(t.Context(), own.Prefix(n), in)
					shorter, err := all.Select(numbers[:n:n], more...)
					require.NoError(t, err, note)
					got, err := tmpl.Render(t.Context(), shorter, in)
					if wantErr != nil {
						require.EqualError(t, err, wantErr.Error(), note)
						continue
					}
					require.NoError(t, err, note)
					compared++
					requireSame(t, want, got, numbers, note)
				}
			}
		}
	}
	t.Logf("%d renderings, %d names fetched from calls", compared, fetched)
	require.Greater(t, compared, 8*len(files))
	require.Greater(t, fetched, 2*len(files))
}

func requireSame(t *testing.T, want, got *Result, numbers []int, note string) {
	t.Helper()
	require.Equal(t, want.Text, got.Text, note)
	require.True(t, slices.Equal(want.Generation, got.Generation), note)
	spans, extents := placed(want, func(n int) int { return n })
	gotSpans, gotExtents := placed(got, func(n int) int { return slices.Index(numbers, n) })
	require.Equal(t, spans, gotSpans, note)
	require.Equal(t, extents, gotExtents, note)
}

func TestSelectRefuses(t *testing.T) {
	m := Object(Member{"role", String("user")}, Member{"content", String("hi")})
	all, err := NewConversation(List(m, m), Null(), Null(), ConversationOptions{})
	require.NoError(t, err)
	for _, c := range []struct {
		reason  string
		numbers []int
		more    []Value
	}{
		{"no message has a number below 0", []int{-1}, nil},
		{"there is no message 2", []int{2}, nil},
		{"there is one other message", []int{0, 3}, []Value{m}},
		{"message 1 is there twice", []int{1, 0, 1}, nil},
		{"the other message is there twice", []int{2, 2}, []Value{m}},
		{"the other message is no object", []int{0, 2}, []Value{String("hi")}},
	} {
		_, err := all.Select(c.numbers, c.more...)
		require.ErrorIs(t, err, rollout.KindInput, c.reason)
	}
	part, err := all.Select([]int{1})
	require.NoError(t, err)
	_, err = part.Select([]int{0})
	require.ErrorIs(t, err, rollout.KindInput, "numbers of a selection are not its places")
	require.Equal(t, 1, part.Number(0))
	require.Equal(t, 1, all.Number(1))
}

// longMessages draws turns of all kinds: questions in between, reasoning, tool calls and results, of which all or
// some have a name, and empty texts.
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
