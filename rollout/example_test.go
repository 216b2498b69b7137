package rollout_test

import (
	"errors"
	"fmt"

	"github.com/turnpack/turnpack/rollout"
)

// An error has one kind; its text says where the failure is and what to do.
func ExampleErrorf() {
	err := error(rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: "a", Turn: rollout.At(2)}, "the turn has no output").WithFix("leave it out"))
	fmt.Println(err)
	fmt.Println(errors.Is(err, rollout.KindInput), errors.Is(err, rollout.KindFormat))
	// Output:
	// rollout "a", turn 2: the turn has no output (leave it out)
	// true false
}

// A prompt can be stored against an earlier turn: here it is the first three ids of turn
// 0's prompt and output, then two more.
func ExampleRollout_PromptTokens() {
	r := &rollout.Rollout{ID: "a", Turns: []rollout.Turn{
		{Prompt: rollout.PromptIDs{Add: []rollout.TokenID{1, 2}}, Output: []rollout.TokenID{7}},
		{Prompt: rollout.PromptIDs{Base: rollout.At(0), Keep: 3, Add: []rollout.TokenID{4, 5}}, Output: []rollout.TokenID{8}},
	}}
	ids, err := r.PromptTokens(nil, 1)
	fmt.Println(ids, err)
	// Output: [1 2 7 4 5] <nil>
}
