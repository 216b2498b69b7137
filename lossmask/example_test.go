package lossmask_test

import (
	"fmt"

	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/rollout"
)

// A sequence of two turns: its flags say what was sampled, the policy says what trains.
func ExampleApply() {
	const s = rollout.FlagSampled
	seq := rollout.Sequence{
		IDs:    []rollout.TokenID{10, 11, 20, 21, 12, 30, 31},
		Flags:  []rollout.Flag{0, 0, s | rollout.FlagReasoning, s | rollout.FlagContent, 0, s | rollout.FlagContent, s | rollout.FlagStop},
		Turn:   []int32{-1, -1, 0, 0, -1, 1, 1},
		Source: []int32{0, 0, 1, 1, 2, 3, 3},
	}
	for _, p := range []lossmask.Policy{lossmask.Policy{}, lossmask.Policy{LastTurn: true}, {NoReasoning: true}} {
		masked, err := lossmask.Apply(seq, p)
		fmt.Println(masked.Weight, err)
	}
	// Output:
	// [0 0 1 1 0 1 1] <nil>
	// [0 0 0 0 0 1 1] <nil>
	// [0 0 0 1 0 1 1] <nil>
}
