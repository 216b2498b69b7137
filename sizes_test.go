package turnpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// uneven is a group with one resolved rollout of three turns and two unresolved ones of one turn.
func uneven() turnpack.Slice {
	long := attempt("g", 0, true)
	long.Messages = append(long.Messages,
		rollout.Message{Role: rollout.RoleUser, Content: "more"},
		rollout.Message{Role: rollout.RoleAssistant, Content: "a longer reply", Sampled: rollout.SampledByPolicy})
	out := turnpack.Slice{long}
	for i := range 2 {
		short := attempt("g", i+1, false)
		short.Messages = short.Messages[:2]
		out = append(out, short)
	}
	return out
}

// Estimators whose unit is the row count the written rows; those that weigh by length count trained
// tokens.
func TestEstimatorsSeeTheRows(t *testing.T) {
	for _, name := range []string{"verl_drgrpo", "verl_opo"} {
		e, ok := reward.Preset(name)
		require.True(t, ok)
		var dst rows
		report, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}, Estimator: &e}.Run(t.Context(), uneven(), &dst)
		require.NoError(t, err)
		require.Equal(t, 5, report.Rows)
		total, sum := 0.0, 0.0
		for i := range dst.got {
			n := 1.0
			if e.Center == "length_weighted" {
				n = float64(dst.got[i].Trained())
			}
			total, sum = total+n, sum+n*dst.got[i].Reward
		}
		for i := range dst.got {
			require.InDelta(t, dst.got[i].Reward-sum/total, *dst.got[i].Advantage, 1e-12, "%s, row %d", name, i)
		}
	}
}

// If all rows of a rollout are masked, it stays in the baseline or leaves it, as in the preset's
// system. The report says which rollouts left and why there is no row.
func TestMaskedRolloutsAndTheBaseline(t *testing.T) {
	for name, want := range map[string]float64{"grpo": -0.577350, "verl_drgrpo": -2. / 3, "openclaw_grpo": -0.577350, "prime_grpo": 0} {
		e, ok := reward.Preset(name)
		require.True(t, ok)
		var dst rows
		report, err := turnpack.Pipeline{Model: model(t), Mask: lossmask.Policy{MaxTokens: 20}, Estimator: &e}.Run(t.Context(), uneven(), &dst)
		require.NoError(t, err)
		require.Equal(t, 2, report.Rows)
		require.Equal(t, map[string]int{"masked: overlong": 1}, report.WithoutRows)
		require.InDelta(t, want, *dst.got[0].Advantage, 2e-6, name)
		if e.Masked == "leave" {
			require.Equal(t, map[string]int{"all its rows are masked": 1}, report.Reward.Excluded)
			require.Equal(t, []turnpack.Skip{{Rollout: "g/0", Reason: "all its rows are masked"}}, report.OutOfStatistics)
		} else {
			require.Empty(t, report.OutOfStatistics, name)
		}
	}
}

// ended is a rollout with a recorded reward and the given status.
func ended(i int, number float64, status rollout.Status) *rollout.Rollout {
	r := attempt("g", i, number > 0)
	r.Status, r.Outcome = status, rollout.Outcome{Reward: &number}
	return r
}

// Overlong filtering by status, as in NeMo RL: rewards 1, 0, 1 and two truncated 0s.
func TestOverlongFilteringKeepsTheBaseline(t *testing.T) {
	src := turnpack.Slice{ended(0, 1, rollout.StatusCompleted), ended(1, 0, rollout.StatusCompleted), ended(2, 1, rollout.StatusCompleted),
		ended(3, 0, rollout.StatusTruncated), ended(4, 0, rollout.StatusTruncated)}
	for name, want := range map[string][3]float64{"nemo_grpo_loo_std": {1.5, -0.866025, 1.5}, "prime_grpo": {1. / 3, -2. / 3, 1. / 3}} {
		e, _ := reward.Preset(name)
		var dst rows
		report, err := turnpack.Pipeline{Model: model(t), Mask: lossmask.Policy{MaskStatus: []rollout.Status{rollout.StatusTruncated}}, Scale: reward.OutcomePolicy{Outcome: "recorded"}, Estimator: e}.Run(t.Context(), src, &dst)
		require.NoError(t, err)
		require.Len(t, dst.got, 3)
		for i := range dst.got {
			require.InDelta(t, want[i], *dst.got[i].Advantage, 5e-6, "%s, row %d", name, i)
		}
		require.Equal(t, map[string]int{"masked: truncated": 2}, report.WithoutRows)
	}
}

// A rollout without any row is in no count of rows, and the report says why it has none.
func TestRolloutsWithoutRowsLeaveTheStatistics(t *testing.T) {
	src := uneven()
	src[0].Turns = []rollout.Turn{{Message: 1, Context: rollout.Context{Unknown: true}}}
	e, _ := reward.Preset("verl_drgrpo")
	var dst rows
	report, err := turnpack.Pipeline{Model: model(t), Estimator: &e}.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Zero(t, *dst.got[0].Advantage, "the rows that are left have one reward")
	const why = "no row to train: what the model saw is not known"
	require.Equal(t, map[string]int{why: 1}, report.Reward.Excluded)
	require.Equal(t, []turnpack.Skip{{Rollout: "g/0", Reason: why}}, report.OutOfStatistics)
	require.Equal(t, map[string]int{"what the model saw is not known": 1}, report.WithoutRows)
}
