package reward

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A masked rollout counts in the baseline where the reproduced system counts it: the numbers of NeMo
// RL (7ea279abf) are (r − mean of the others) / σ₁ of the others over all five rollouts, those of
// prime-rl (559b44772) r − mean over three.
func TestMaskedRollouts(t *testing.T) {
	for name, want := range map[string][]float64{
		"nemo_grpo_loo_std":   {1.5, -0.866025, 1.5},
		"nemo_grpo_group_std": {1.095445, -0.730297, 1.095445},
		"verl_grpo":           {1.095445, -0.730297, 1.095445},
		"openclaw_grpo":       {1.095445, -0.730297, 1.095445},
		"skyrl_rloo":          {0.75, -0.5, 0.75},
		"trl_async_grpo":      {1.224745, -0.816497, 1.224745},
		"grpo":                {1.095445, -0.730297, 1.095445},
		"prime_grpo":          {1. / 3, -2. / 3, 1. / 3},
		"prime_max_rl":        {0.5, -1, 0.5},
	} {
		e, ok := Preset(name)
		require.True(t, ok, name)
		got, report, err := Advantages([]GroupRewards{overlong()}, e)
		require.NoError(t, err)
		for i, w := range want {
			require.InDelta(t, w, got[0][i].Value, 5e-6, "%s, rollout %d", name, i)
		}
		if e.Masked == maskedLeave {
			require.Equal(t, map[string]int{excludedMasked: 2}, report.Excluded, name)
			require.Equal(t, DroppedExcluded+": "+excludedMasked, got[0][3].Dropped)
			require.Equal(t, 3, report.Used)
			continue
		}
		require.Empty(t, report.Excluded, name)
		require.Equal(t, 5, report.Used, name)
	}
}

// Of a partly masked rollout, the rule selects the rows that count.
func TestMaskedRowsOfARollout(t *testing.T) {
	group := GroupRewards{Rollouts: []RolloutReward{{ID: "a", Reward: 1, Rows: 4, MaskedRows: 3}, {ID: "b", Rows: 1}}}
	for rule, want := range map[Choice]float64{maskedStay: 1 - 4./5, maskedLeave: 1 - 1./2} {
		got, _, err := Advantages([]GroupRewards{group}, Estimator{Unit: unitRow, Masked: rule, Divisor: divideNone})
		require.NoError(t, err)
		require.InDelta(t, want, got[0][0].Value, 1e-12, rule)
	}
	group.Rollouts[0].MaskedRows = 5
	_, _, err := Advantages([]GroupRewards{group}, Estimator{})
	require.ErrorContains(t, err, "5 of 4 rows are masked")
}

// A rollout of many rows counts once in SkyRL, whose statistics use the last row of each trajectory,
// and in prime-rl, whose statistics use traces.
func TestRolloutsOfManyRowsCountOnce(t *testing.T) {
	group := GroupRewards{Rollouts: []RolloutReward{{ID: "a", Reward: 1, Rows: 3}, {ID: "b", Rows: 1}}}
	for _, name := range []string{"skyrl_drgrpo", "prime_grpo"} {
		e, _ := Preset(name)
		got, _, err := Advantages([]GroupRewards{group}, e)
		require.NoError(t, err)
		require.InDelta(t, 0.5, got[0][0].Value, 1e-12, name)
	}
}
