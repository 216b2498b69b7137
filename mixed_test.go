package turnpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// mixed is batch with a number in place of the verdict of one rollout of group b.
func mixed() turnpack.Slice {
	src := batch()
	number := 0.5
	src[4].Outcome = rollout.Outcome{Reward: &number}
	return src
}

// A group that holds verdicts and numbers is left out and listed; the others are as they would be
// without it.
func TestMixedGroupsAreLeftOut(t *testing.T) {
	p := turnpack.Pipeline{Model: model(t), Scale: reward.OutcomePolicy{Outcome: "auto"}}
	var dst, alone rows
	report, err := p.Run(t.Context(), mixed(), &dst)
	require.NoError(t, err)
	var others turnpack.Slice
	for _, r := range batch() {
		if r.Group != "b" {
			others = append(others, r)
		}
	}
	_, err = p.Run(t.Context(), others, &alone)
	require.NoError(t, err)
	require.Equal(t, alone.got, dst.got)
	const why = "its group holds verdicts and numbers"
	require.Equal(t, map[string]int{why: 4}, report.WithoutRows)
	require.Equal(t, 4, report.Reward.Excluded[why])
	require.Equal(t, 4, report.LeftOut)
	require.Len(t, report.OutOfStatistics, 4)
	for _, s := range report.Skips {
		require.ErrorContains(t, s.Error, `group "b" holds rollouts with a verdict`)
		require.Contains(t, s.Rollout, "b/")
	}

	p.OnError = rollout.OnErrorStop
	_, err = p.Run(t.Context(), mixed(), &rows{})
	require.ErrorContains(t, err, `group "b" holds`)
	p.OnError, p.NoAdvantages = rollout.OnErrorSkip, true
	report, err = p.Run(t.Context(), mixed(), &rows{})
	require.NoError(t, err)
	require.Equal(t, 12, report.Rows, "rows without advantages compare nothing")
}

// A group that is left out does not enter statistics over the batch.
func TestMixedGroupsLeaveTheBatch(t *testing.T) {
	p := turnpack.Pipeline{Model: model(t), Scale: reward.OutcomePolicy{Outcome: "auto"}, Estimator: reward.Estimator{CenterOver: "batch", ScaleOver: "batch"}}
	src := mixed()
	huge := 1e6
	src[4].Outcome.Reward = &huge
	var dst rows
	_, err := p.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Len(t, dst.got, 8)
	// Rewards 1 1 −1 −1 1 1 1 1: mean ½, σ₁ = √(6/7).
	require.InDelta(t, 0.5/0.925820, *dst.got[0].Advantage, 1e-5)
}

// A run with only mixed groups has no reward to train on, and its error says so.
func TestNothingButMixedGroups(t *testing.T) {
	var src turnpack.Slice
	for _, r := range mixed() {
		if r.Group == "b" {
			src = append(src, r)
		}
	}
	_, err := turnpack.Pipeline{Model: model(t), Scale: reward.OutcomePolicy{Outcome: "auto"}}.Run(t.Context(), src, &rows{})
	require.ErrorContains(t, err, "4 its group holds verdicts and numbers")
	require.ErrorContains(t, err, "choose the scale")
}

// An infrastructure failure that counts as unresolved is a verdict of −1: it belongs to groups of
// verdicts, recorded outcome or not, and not to groups of numbers of another range.
func TestInfrastructureCountsAsAVerdict(t *testing.T) {
	p := turnpack.Pipeline{Model: model(t), Scale: reward.OutcomePolicy{Outcome: "auto", InfraUnresolved: true}}
	src := batch()
	number := 0.5
	for _, r := range src {
		if r.Group == "b" {
			r.Outcome = rollout.Outcome{Reward: &number}
		}
	}
	src[0].Status, src[0].Outcome = rollout.StatusAborted, rollout.Outcome{} // a/0
	src[1].Status, src[1].Outcome = rollout.StatusAborted, rollout.Outcome{} // b/0
	var dst rows
	report, err := p.Run(t.Context(), src, &dst)
	require.NoError(t, err)
	require.Equal(t, 4, report.WithoutRows["its group holds verdicts and numbers"])
	for _, s := range report.Skips {
		require.Contains(t, s.Rollout, "b/")
	}
	// Group a, without rows of a/0: rewards −1 1 −1 −1, mean −½, σ₁ = 1.
	require.Equal(t, "a/1", dst.got[0].Rollout)
	require.InDelta(t, 1.5, *dst.got[0].Advantage, 1e-5)
}
