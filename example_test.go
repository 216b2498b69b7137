package turnpack_test

import (
	"context"
	"fmt"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/rollout"
)

// shown is a Sink that prints what each row trains.
type shown struct{}

func (shown) Write(s rollout.Sample) error {
	fmt.Printf("%s %d %v %+.3f\n", s.Rollout, s.IDs, s.Weight, *s.Advantage)
	return nil
}

// Two attempts at one task, with the ids that the engine saw and sampled: the group
// baseline makes one advantage positive and the other negative, and only sampled
// tokens have weight. Text without ids needs Pipeline.Model (tokenize.Load).
func ExamplePipeline() {
	attempt := func(id string, reply rollout.TokenID, verdict rollout.Verdict) *rollout.Rollout {
		r := &rollout.Rollout{ID: id, Instance: "task", Status: rollout.StatusCompleted, Outcome: rollout.Outcome{Verdict: verdict}}
		r.Messages = []rollout.Message{{Role: rollout.RoleUser, Content: "Go."}, {Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy}}
		r.Turns = []rollout.Turn{{Message: 1, Prompt: rollout.PromptIDs{Add: []rollout.TokenID{1, 2}}, Output: []rollout.TokenID{reply, 3}}}
		return r
	}
	src := turnpack.Slice{attempt("good", 7, rollout.VerdictResolved), attempt("bad", 8, rollout.VerdictUnresolved)}
	report, err := turnpack.Pipeline{}.Run(context.Background(), src, shown{})
	fmt.Println(report.Rows, report.Trained, err)
	// Output:
	// good [1 2 7 3] [0 0 1 1] +0.707
	// bad [1 2 8 3] [0 0 1 1] -0.707
	// 2 4 <nil>
}
