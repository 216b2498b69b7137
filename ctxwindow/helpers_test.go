package ctxwindow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// chars is the kit's chars4 counter; it also records its calls and the messages it was given.
type chars struct{ calls, messages int }

func renderedText(ms []rollout.Message) string {
	var b strings.Builder
	for _, m := range ms {
		b.WriteString("<" + string(m.Role) + "> " + m.Content + m.Reasoning + " </s> ")
	}
	return b.String() + "<assistant> "
}

func (c *chars) Count(_ context.Context, ms []rollout.Message) (int, error) {
	c.calls++
	c.messages += len(ms)
	return (utf8.RuneCountInString(renderedText(ms)) + 3) / 4, nil
}

// words is the kit's ws counter. Its counts add up over messages.
type words struct{ calls int }

func (w *words) Count(_ context.Context, ms []rollout.Message) (int, error) {
	w.calls++
	return len(strings.Fields(renderedText(ms))), nil
}

// stripping counts like a template that drops the reasoning of all but the last assistant message:
// counts do not add up, and a context can cost less than its first part.
type stripping struct{ chars }

func (s *stripping) Count(ctx context.Context, ms []rollout.Message) (int, error) {
	last := -1
	for k := range ms {
		if ms[k].Role == rollout.RoleAssistant {
			last = k
		}
	}
	shown := append([]rollout.Message(nil), ms...)
	for k := range shown {
		if k != last {
			shown[k].Reasoning = ""
		}
	}
	return s.chars.Count(ctx, shown)
}

// agent makes a rollout of steps turns: an assistant message and one or two
// observations each, about size words, tool results among them.
func agent(rng *rand.Rand, steps int, size func(step int) int) *rollout.Rollout {
	text := func(n int) string {
		const syllables = "ab cd 日本 módulo fix x run tests "
		var b strings.Builder
		for b.Len() < n*6 {
			b.WriteString(syllables[:len("ab cd ")])
			b.WriteString(fmt.Sprintf("w%d é ", rng.IntN(1000)))
		}
		return b.String()
	}
	r := &rollout.Rollout{ID: "r", Messages: []rollout.Message{
		{Role: rollout.RoleSystem, Content: "you are an agent"},
		{Role: rollout.RoleUser, Content: "fix the bug " + text(20)},
	}}
	for k := range steps {
		a := rollout.Message{Role: rollout.RoleAssistant, Content: text(1 + size(k)/3), Sampled: rollout.SampledByPolicy}
		if k%3 == 0 {
			a.Reasoning = text(5)
		}
		obs := rollout.Message{Role: rollout.RoleUser, Content: text(size(k))}
		if k%2 == 0 {
			a.ToolCalls = []rollout.ToolCall{{ID: "c", Name: "bash", Arguments: "{}"}}
			obs.Role, obs.ToolCallID = rollout.RoleTool, "c"
		}
		r.Messages = append(r.Messages, a, obs)
		if k%5 == 4 {
			r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleTool, Content: text(2)})
		}
	}
	return r
}

// shown formats a context.
func shown(r *rollout.Rollout, c rollout.Context, before int) []rollout.Message {
	var out []rollout.Message
	take := func(from, to int) {
		for _, m := range r.Messages[from:to] {
			if m.Role != rollout.RoleExit {
				out = append(out, m)
			}
		}
	}
	if c.Parts == nil {
		take(0, before)
		return out
	}
	for _, p := range c.Parts {
		if p.Message != nil {
			out = append(out, *p.Message)
			continue
		}
		take(p.From, p.To)
	}
	return out
}

// checkPromises asserts what every policy but the parity policy promises.
func checkPromises(t testing.TB, r *rollout.Rollout, contexts []rollout.Context, budget int, counter Counter) {
	t.Helper()
	for k, turn := range rollout.TurnsOf(r) {
		ms := shown(r, contexts[k], turn.Message)
		n, err := counter.Count(context.Background(), ms)
		require.NoError(t, err)
		require.LessOrEqual(t, n, budget, "turn %d exceeds the budget", k)
		if turn.Message == 0 {
			continue
		}
		last := r.Messages[turn.Message-1]
		require.NotEmpty(t, ms)
		got := ms[len(ms)-1]
		require.Equal(t, last.Role, got.Role, "turn %d lost its latest message", k)
		if got.Content != last.Content {
			require.True(t, utf8.ValidString(got.Content))
			head, _, _ := strings.Cut(got.Content, "\n[")
			_, tail, _ := strings.Cut(got.Content, "left out]\n")
			if tail != "" || strings.HasSuffix(got.Content, "left out]\n") {
				require.True(t, strings.HasPrefix(last.Content, head) && strings.HasSuffix(last.Content, tail), "turn %d", k)
			}
		}
		checkWholeTurns(t, r, contexts[k], turn.Message, k)
	}
}

// checkWholeTurns asserts that parts begin and end between history turns.
func checkWholeTurns(t testing.TB, r *rollout.Rollout, c rollout.Context, before, k int) {
	t.Helper()
	boundary := func(i int) bool {
		return i >= before || i < 3 || r.Messages[i].Role == rollout.RoleAssistant
	}
	at := 0
	for _, p := range c.Parts {
		require.LessOrEqual(t, at, p.From, "turn %d: parts in order", k)
		require.LessOrEqual(t, p.From, p.To)
		require.LessOrEqual(t, p.To, before)
		if p.Message == nil && at != p.From {
			require.True(t, boundary(at) && boundary(p.From), "turn %d cuts a history turn at %d or %d", k, at, p.From)
		}
		at = p.To
	}
	if c.Parts != nil {
		require.Equal(t, before, at, "turn %d: parts reach the turn", k)
	}
}
