package traj_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

func TestNothingToReadOrToJoinIsAnError(t *testing.T) {
	_, err := traj.NewReader(nil, "x.jsonl", traj.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, traj.Options{Rewards: []*traj.Rewards{nil}}.Validate(), "Options.Rewards")
}

// A turn without a message cannot be a step of ATIF, and the notes say so.
func TestATIFNotesTurnsKnownByIDsAlone(t *testing.T) {
	r := &rollout.Rollout{ID: "r", Turns: []rollout.Turn{{Message: -1, Prompt: rollout.PromptIDs{Add: []int32{5}}, Output: []int32{7}}}}
	require.NoError(t, r.Validate())
	_, lost, err := traj.AppendATIF(nil, r)
	require.NoError(t, err)
	require.Len(t, lost, 1)
	require.Equal(t, "tokens", lost[0].Code)
}
