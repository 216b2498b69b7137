package ctxwindow_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/rollout"
)

// A live rollout: each call is fitted before it is made, and the context it saw is recorded with
// its turn. The counter replaces the rollout's Encoder.Counter.
func ExampleSession() {
	words := ctxwindow.CounterFunc(func(_ context.Context, ms []rollout.Message) (int, error) {
		n := 1
		for _, m := range ms {
			n += 1 + len(strings.Fields(m.Content))
		}
		return n, nil
	})
	window, err := ctxwindow.NewSession(ctxwindow.Refill{Budget: 60}, words)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &rollout.Rollout{ID: "live", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "Fix the test."}}}
	window.Append(r.Messages...)
	for call := range 8 {
		shown, err := window.Fit(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("call %d sees %d messages, %d tokens\n", call, len(shown.Messages), shown.Tokens)
		r.Turns = append(r.Turns, rollout.Turn{Message: len(r.Messages), Step: call, Context: shown.Context})
		more := []rollout.Message{
			{Role: rollout.RoleAssistant, Content: "ls", Sampled: rollout.SampledByPolicy},
			{Role: rollout.RoleUser, Content: strings.Repeat("file ", 10)},
		}
		window.Append(more...)
		r.Messages = append(r.Messages, more...)
	}
	fmt.Println("rows", window.Report().Rows)
	// Output:
	// call 0 sees 1 messages, 5 tokens
	// call 1 sees 3 messages, 18 tokens
	// call 2 sees 5 messages, 31 tokens
	// call 3 sees 7 messages, 44 tokens
	// call 4 sees 9 messages, 57 tokens
	// call 5 sees 3 messages, 28 tokens
	// call 6 sees 5 messages, 41 tokens
	// call 7 sees 7 messages, 54 tokens
	// rows 2
}

// lastCalls is a user's own policy: the task and what followed the last n calls.
type lastCalls struct{ n int }

func (p lastCalls) Validate() error { return nil }

func (p lastCalls) Start(h *ctxwindow.History) ctxwindow.Strategy { return lastCallsOf{p.n, h} }

type lastCallsOf struct {
	n int
	h *ctxwindow.History
}

func (s lastCallsOf) View(ctx context.Context, n int) (ctxwindow.View, error) {
	var calls []int
	for i, m := range s.h.Messages() {
		if m.Role == rollout.RoleAssistant {
			calls = append(calls, i)
		}
	}
	if len(calls) <= s.n {
		return ctxwindow.View{}, nil // the plain history
	}
	parts := []rollout.ContextPart{{To: calls[0]}, {From: calls[len(calls)-s.n], To: n}}
	tokens, err := s.h.Count(ctx, parts)
	return ctxwindow.View{Parts: parts, Tokens: tokens, Omitted: len(calls) - s.n}, err
}

// A user's own policy works wherever those of the package do.
func ExamplePolicy() {
	r := &rollout.Rollout{ID: "demo", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "Count."}}}
	for i := range 4 {
		r.Messages = append(r.Messages,
			rollout.Message{Role: rollout.RoleAssistant, Content: fmt.Sprint(i), Sampled: rollout.SampledByPolicy},
			rollout.Message{Role: rollout.RoleUser, Content: "next"})
	}
	count := ctxwindow.CounterFunc(func(_ context.Context, ms []rollout.Message) (int, error) { return len(ms), nil })
	contexts, report, err := ctxwindow.Plan(context.Background(), r, lastCalls{2}, count)
	if err != nil {
		fmt.Println(err)
		return
	}
	for t, c := range contexts {
		fmt.Println("turn", t, len(c.Parts) > 0, c.Parts)
	}
	fmt.Println("windowed", report.Windowed, "largest", report.MaxTokens)
	// Output:
	// turn 0 false []
	// turn 1 false []
	// turn 2 false []
	// turn 3 true [{0 1 <nil>} {3 7 <nil>}]
	// windowed 1 largest 5
}
