package reward_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// A rollout without a reward takes no part in the mean and the deviation of all returns.
func TestTokenTableLeavesOutWhatIsExcluded(t *testing.T) {
	e, _ := reward.TokenPreset("nemo_reinforce_pp")
	credit := func(more ...reward.RolloutReward) []float32 {
		var table reward.TokenTable
		rollouts := append([]reward.RolloutReward{{ID: "a", Reward: 1}, {ID: "b", Reward: -2}}, more...)
		require.NoError(t, table.Finish(e, []reward.GroupRewards{{Key: "g", Rollouts: rollouts}}, func(string) []reward.TokenRow { return []reward.TokenRow{{Trained: 2, Tail: 2}} }))
		seq, err := table.Credit(rollout.Sequence{Identity: rollout.Identity{Rollout: "a"}, IDs: []rollout.TokenID{1, 2}, Weight: []float32{1, 1}})
		require.NoError(t, err)
		return seq.Credit
	}
	require.Equal(t, credit(), credit(reward.RolloutReward{ID: "c", Excluded: "no reward"}))
}

// A hand-made sequence with columns of unequal length gets no credit.
func TestColumnsOfUnequalLengthGetNoCredit(t *testing.T) {
	short := rollout.Sequence{IDs: []rollout.TokenID{1, 2, 3}, Weight: []float32{0, 1}, Turn: []int32{-1, 0, 0}, Source: []int32{0, 1, 1}}
	bare := rollout.Sequence{IDs: []rollout.TokenID{1, 2}, Weight: []float32{0, 1}}
	r := &rollout.Rollout{Turns: []rollout.Turn{{Message: -1, Output: []int32{2, 3}}}}
	_, err := reward.Credit(short, 1)
	require.ErrorContains(t, err, "Weight: the column has 2 entries for 3 tokens")
	for _, seq := range []rollout.Sequence{short, bare} {
		_, err = reward.CreditMessages(seq, 1, nil, reward.Estimator{})
		require.ErrorIs(t, err, rollout.KindInput)
		_, _, err = reward.CreditSteps(seq, r, map[int]reward.Advantage{0: {Value: 1}})
		require.ErrorIs(t, err, rollout.KindInput)
	}
}
