package ctxwindow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// live runs a rollout through a session: before each turn the messages before it are appended and
// the call is fitted.
func live(t testing.TB, s *Session, r *rollout.Rollout, fit func(turn int) (Fitted, error)) []rollout.Context {
	t.Helper()
	var contexts []rollout.Context
	at := 0
	for k, turn := range rollout.TurnsOf(r) {
		s.Append(r.Messages[at:turn.Message]...)
		at = turn.Message
		f, err := fit(k)
		require.NoError(t, err, "turn %d", k)
		require.Equal(t, shown(r, f.Context, turn.Message), f.Messages, "turn %d", k)
		contexts = append(contexts, f.Context)
	}
	return contexts
}

// TestSessionIsPlan: the calls of a live rollout see what a plan of the finished rollout says, with
// the same rows and counts.
func TestSessionIsPlan(t *testing.T) {
	rounds := uint64(40)
	if testing.Short() {
		rounds = 8
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(seed, 7))
		r := agent(rng, 1+rng.IntN(30), func(int) int {
			if rng.IntN(12) == 0 {
				return 150
			}
			return rng.IntN(30)
		})
		for range rng.IntN(3) { // an exit record may come anywhere
			i := rng.IntN(len(r.Messages) + 1)
			r.Messages = append(r.Messages[:i:i], append([]rollout.Message{{Role: rollout.RoleExit, Content: "done"}}, r.Messages[i:]...)...)
		}
		budget := 100 + rng.IntN(400)
		for _, policy := range append(safePolicies(budget), None{}, SWERL(budget), lastMessages{n: 3}) {
			for _, counter := range []func() Counter{
				func() Counter { return &words{} }, func() Counter { return &chars{} }, func() Counter { return &stripping{} },
			} {
				want, report := plan(t, r, policy, counter())
				s, err := NewSession(policy, counter())
				require.NoError(t, err)
				got := live(t, s, r, func(int) (Fitted, error) { return s.Fit(t.Context()) })
				require.True(t, reflect.DeepEqual(want, got), "seed %d %s", seed, name(policy))
				require.Equal(t, report, s.Report(), "seed %d %s", seed, name(policy))
			}
		}
	}
}

// flaky fails now and then, like a tokenizer on another machine.
type flaky struct {
	Counter
	rng *rand.Rand
}

var errFlaky = errors.New("no answer")

func (f flaky) Count(ctx context.Context, ms []rollout.Message) (int, error) {
	if f.rng.IntN(5) == 0 {
		return 0, errFlaky
	}
	return f.Counter.Count(ctx, ms)
}

// TestSessionForgetsNoCut: failed and repeated calls do not change what is shown.
func TestSessionForgetsNoCut(t *testing.T) {
	failures := 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 8))
		r := agent(rng, 40, func(int) int { return 5 + rng.IntN(30) })
		for _, policy := range append(safePolicies(500), SWERL(500)) {
			want, report := plan(t, r, policy, CounterFunc((&chars{}).Count))
			p := policy
			if c, ok := policy.(Compaction); ok {
				summarize := c.Summarize
				c.Summarize = func(ctx context.Context, omitted []rollout.Message) (rollout.Message, error) {
					if rng.IntN(3) == 0 {
						return rollout.Message{}, errFlaky
					}
					return summarize(ctx, omitted)
				}
				p = c
			}
			s, err := NewSession(p, flaky{CounterFunc((&chars{}).Count), rng})
			require.NoError(t, err)
			got := live(t, s, r, func(int) (Fitted, error) {
				for range 1 + rng.IntN(2) {
					for {
						_, err := s.Fit(t.Context())
						if err == nil {
							break
						}
						require.ErrorIs(t, err, errFlaky)
						failures++
					}
				}
				for {
					if f, err := s.Fit(t.Context()); err == nil {
						return f, nil
					}
				}
			})
			require.True(t, reflect.DeepEqual(want, got), "seed %d %s", seed, name(policy))
			again := s.Report()
			again.Calls, report.Calls = 0, 0
			require.Equal(t, report, again, "seed %d %s", seed, name(policy))
		}
	}
	require.Greater(t, failures, 100)
}

// TestSessionIsLinear: for a live rollout of twice the length the counter is called twice as often,
// with twice the messages.
func TestSessionIsLinear(t *testing.T) {
	const budget = 3000
	run := func(policy Policy, counter Counter, steps int) Report {
		s, err := NewSession(policy, counter)
		require.NoError(t, err)
		live(t, s, agent(rand.New(rand.NewPCG(1, 1)), steps, func(k int) int { return 20 + k%40 }), func(int) (Fitted, error) { return s.Fit(t.Context()) })
		return s.Report()
	}
	for _, policy := range []Policy{HeadTail{Budget: budget}, Tail{Budget: budget}, Refill{Budget: budget}, shortCompaction(budget)} {
		var calls, messages, sums [2]int
		for i, steps := range []int{500, 1000} {
			calls[i] = run(policy, CounterFunc(func(ctx context.Context, ms []rollout.Message) (int, error) {
				messages[i] += len(ms)
				return cached{}.Count(ctx, ms)
			}), steps).Calls
			sums[i] = run(policy, &words{}, steps).Calls
			require.LessOrEqual(t, calls[i], 4*steps, name(policy))
			require.LessOrEqual(t, sums[i], 5*steps, name(policy))
		}
		require.LessOrEqual(t, calls[1]*10, calls[0]*22, name(policy))
		require.LessOrEqual(t, sums[1]*10, sums[0]*22, name(policy))
		switch policy.(type) {
		case HeadTail, Tail: // count the plain history before each call
		default:
			require.LessOrEqual(t, messages[1]*10, messages[0]*22, "%s: no call looks at the whole history", name(policy))
		}
	}
}

func shortCompaction(budget int) Compaction {
	return Compaction{Budget: budget, Summarize: func(_ context.Context, omitted []rollout.Message) (rollout.Message, error) {
		return rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("a summary of ", len(omitted))}, nil
	}}
}

// lastMessages is a user's own policy: the task and the last n messages. It cuts at every tenth
// call and remembers where.
type lastMessages struct{ n int }

func (lastMessages) Validate() error { return nil }

func (p lastMessages) Start(h *History) Strategy { return &lastMessagesOf{h: h, n: p.n} }

type lastMessagesOf struct {
	h      *History
	n, cut int
}

func (s *lastMessagesOf) View(ctx context.Context, n int) (View, error) {
	if got := len(s.h.Messages()); got != n {
		return View{}, fmt.Errorf("the history shows %d messages before message %d", got, n)
	}
	if n > s.cut+10*s.n {
		s.cut = n - s.n
	}
	if s.cut <= 2 {
		return View{}, nil
	}
	note := rollout.Message{Role: rollout.RoleUser, Content: "later"}
	parts := []rollout.ContextPart{{From: 0, To: 2}, {From: 2, To: s.cut, Message: &note}, {From: s.cut, To: n}}
	tokens, err := s.h.Count(ctx, parts)
	return View{Parts: parts, Tokens: tokens, Omitted: 1}, err
}

// bad is a policy whose strategy returns the given view.
type bad struct{ parts []rollout.ContextPart }

func (bad) Validate() error                               { return nil }
func (b bad) Start(*History) Strategy                     { return b }
func (b bad) View(_ context.Context, _ int) (View, error) { return View{Parts: b.parts}, nil }

// TestViewsAreChecked: the error names a policy that shows messages out of range.
func TestViewsAreChecked(t *testing.T) {
	r := agent(rand.New(rand.NewPCG(1, 1)), 3, func(int) int { return 3 })
	note := &rollout.Message{Role: rollout.RoleUser, Content: "x"}
	for _, parts := range [][]rollout.ContextPart{
		{}, {{From: -1, To: 1}}, {{From: 0, To: 3}}, {{From: 1, To: 0}}, {{From: 1, To: 1}}, {{From: 4, To: 4, Message: note}}, {{From: 0, To: 9, Message: note}},
	} {
		_, _, err := Plan(t.Context(), r, bad{parts}, &words{})
		require.ErrorIs(t, err, rollout.KindInput, "%v", parts)
		require.ErrorContains(t, err, "bad")
		_, err = Fit(t.Context(), r.Messages[:2], bad{parts}, &words{})
		require.ErrorIs(t, err, rollout.KindInput, "%v", parts)
	}
	// A note may come before all messages or after them.
	for _, parts := range [][]rollout.ContextPart{{{Message: note}, {From: 0, To: 2}}, {{From: 0, To: 2}, {From: 2, To: 2, Message: note}}} {
		f, err := Fit(t.Context(), r.Messages[:2], bad{parts}, &words{})
		require.NoError(t, err)
		require.Len(t, f.Messages, 3)
	}
	f, err := Fit(t.Context(), nil, bad{[]rollout.ContextPart{{Message: note}}}, &words{})
	require.NoError(t, err)
	require.Len(t, f.Messages, 1)
}

func TestSessionFaults(t *testing.T) {
	_, err := NewSession(nil, nil)
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = NewSession(Refill{}, &words{})
	require.ErrorContains(t, err, "Budget")
	_, err = (&Session{}).Fit(t.Context())
	require.Error(t, err)
}
