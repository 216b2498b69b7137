package ctxwindow_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/rollout"
)

// The counter counts words in place of an encoder. The second and third calls no longer see the
// whole conversation.
func ExamplePlan() {
	r := &rollout.Rollout{ID: "demo", Messages: []rollout.Message{
		{Role: rollout.RoleSystem, Content: "You repair code."},
		{Role: rollout.RoleUser, Content: "Fix the test."},
		{Role: rollout.RoleAssistant, Content: "ls", Sampled: rollout.SampledByPolicy},
		{Role: rollout.RoleUser, Content: "main.go main_test.go"},
		{Role: rollout.RoleAssistant, Content: "cat main.go", Sampled: rollout.SampledByPolicy},
		{Role: rollout.RoleUser, Content: strings.Repeat("line ", 40)},
		{Role: rollout.RoleAssistant, Content: "done", Sampled: rollout.SampledByPolicy},
	}}
	count := ctxwindow.CounterFunc(func(_ context.Context, ms []rollout.Message) (int, error) {
		n := 1
		for _, m := range ms {
			n += 1 + len(strings.Fields(m.Content))
		}
		return n, nil
	})
	contexts, report, err := ctxwindow.Plan(context.Background(), r, ctxwindow.Refill{Budget: 40}, count)
	if err != nil {
		fmt.Println(err)
		return
	}
	for t, c := range contexts {
		fmt.Printf("turn %d:", t)
		for _, p := range c.Parts {
			if p.Message != nil {
				fmt.Printf(" [%d,%d) as %q", p.From, p.To, strings.Join(strings.Fields(p.Message.Content), " "))
				continue
			}
			fmt.Printf(" [%d,%d)", p.From, p.To)
		}
		fmt.Println()
	}
	fmt.Println("rows", report.Rows, "largest", report.MaxTokens, "shortened", report.Shortened)
	// Output:
	// turn 0:
	// turn 1:
	// turn 2: [0,1) [1,2) as "Fix the test. [1 earlier turn left out to fit the context window]" [4,5) [5,6) as "line line line line line line l [138 characters left out] line line line line line line"
	// rows 2 largest 40 shortened 1
}
