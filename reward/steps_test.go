package reward

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func TestStepValues(t *testing.T) {
	steps := []rollout.StepScore{{Step: 0, Score: ptr(1.0)}, {Step: 1}, {Step: 2, Score: ptr(0.5)}}
	r := &rollout.Rollout{Steps: steps}
	require.Equal(t, []StepValue{{0, 0}, {2, -0.5}}, StepsOf(r, -1, 0), "a step without a score is left out")
	require.Equal(t, []StepValue{{0, 1 + 2}, {2, 1 + 1}}, StepsOf(r, 1, 2))
}

// Steps are compared by index: a rollout that lacks a step does not shift the others.
func TestStepsAreKeyed(t *testing.T) {
	e, ok := Preset("openclaw_step_wise")
	require.True(t, ok)
	whole := StepGroup{Key: "g", Rollouts: []RolloutSteps{
		{ID: "a", Steps: []StepValue{{0, 1}, {1, 1}, {2, 0}}},
		{ID: "b", Steps: []StepValue{{0, 0}, {2, 1}}},
	}}
	got, _, err := StepAdvantages([]StepGroup{whole}, e)
	require.NoError(t, err)
	require.InDelta(t, 1, got[0][0][0].Value, 1e-5)
	require.Equal(t, 1.0, got[0][0][1].Value, "the only step 1 keeps its reward")
	require.InDelta(t, -1, got[0][0][2].Value, 1e-5)
	require.InDelta(t, 1, got[0][1][1].Value, 1e-5, "step 2 of b meets step 2 of a")

	other := StepGroup{Key: "h", Rollouts: []RolloutSteps{{ID: "a", Steps: []StepValue{{2, 7}}}}}
	both, _, err := StepAdvantages([]StepGroup{other, whole}, e)
	require.NoError(t, err)
	require.Equal(t, got[0], both[1], "groups never mix")

	_, _, err = StepAdvantages(nil, Estimator{Grouping: groupWholeBatch})
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestConstantBucketsAreDropped(t *testing.T) {
	e, _ := Preset("openclaw_step_wise")
	dull := StepGroup{Key: "g", Rollouts: []RolloutSteps{{ID: "a", Steps: []StepValue{{0, 1}, {1, 1}}}, {ID: "b", Steps: []StepValue{{0, 1}, {1, 1}}}}}
	got, report, err := StepAdvantages([]StepGroup{dull}, e)
	require.NoError(t, err)
	require.Equal(t, [][]Advantage{{{}, {Dropped: droppedConstant}}, {{}, {Dropped: droppedConstant}}}, got[0], "the first bucket is kept when none is left")
	require.Equal(t, map[string]int{droppedConstant: 2}, report.Dropped)
}

func turns() (rollout.Sequence, *rollout.Rollout) {
	seq, err := rollout.Columns{
		IDs: []rollout.TokenID{1, 2, 2, 2}, Source: []int32{0, 1, 2, 3}, Turn: []int32{-1, 0, 1, 2},
		Flags: []rollout.Flag{0, rollout.FlagSampled, rollout.FlagSampled, rollout.FlagSampled},
	}.Sequence(rollout.Identity{Rollout: "r"}, 0)
	if err != nil {
		panic(err)
	}
	seq, _ = seq.WithWeight([]float32{0, 1, 1, 1})
	return seq, &rollout.Rollout{Turns: []rollout.Turn{{Step: 0}, {Step: 4}, {Step: 7}}}
}

func TestCreditSteps(t *testing.T) {
	seq, r := turns()
	got, leftOut, err := CreditSteps(seq, r, map[int]Advantage{0: {Value: 2}, 4: {Dropped: droppedConstant}})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 2, 0, 0}, got.Credit)
	require.Equal(t, []float32{0, 1, 0, 0}, got.Weight, "steps of which nothing is known are not trained")
	require.Equal(t, 2, leftOut)
	require.Equal(t, []float32{0, 1, 1, 1}, seq.Weight)
	_, _, err = CreditSteps(seq, &rollout.Rollout{Turns: r.Turns[:1]}, map[int]Advantage{0: {}})
	require.ErrorIs(t, err, rollout.KindInput)
}

func TestCreditMessages(t *testing.T) {
	seq, _ := turns()
	e := Estimator{Override: Override{InvalidToolCall: ptr(-5.0), MalformedThinking: ptr(-2.0)}, Clip: &Range{-3, 3}}
	got, err := CreditMessages(seq, 7, map[int]MessageFlags{2: {InvalidToolCall: true, MalformedThinking: true}, 3: {MalformedThinking: true}}, e)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 3, -3, -2}, got.Credit, "override first, then clip")
	require.Equal(t, 7.0, Estimator{}.MessageAdvantage(7, MessageFlags{InvalidToolCall: true}), "no override set")
}

func TestTokenAdvantages(t *testing.T) {
	groups := []TokenGroup{{Key: "g", Rollouts: []TokenRollout{
		{Reward: 1, Mask: []bool{true, false, true, false}}, {Reward: 0, Baseline: 0.5, Mask: []bool{true}}, {Reward: 3, Mask: []bool{false}},
	}}}
	raw := Whiten{Off: true}
	for _, c := range []struct {
		reason string
		e      TokenEstimator
		want   [][]float64
	}{
		{"the return flows back over tool tokens", TokenEstimator{Center: centerNone, Discount: 0.5, Whiten: raw}, [][]float64{{0.5, 0, 1, 0}, {0}, {0}}},
		{"unless it is reset", TokenEstimator{Center: centerNone, ResetAtMask: true, Whiten: raw}, [][]float64{{0, 0, 1, 0}, {0}, {0}}},
		{"a given baseline", TokenEstimator{Center: centerBaseline, Whiten: raw}, [][]float64{{1, 0, 1, 0}, {-0.5}, {0}}},
		{"the group mean", TokenEstimator{Whiten: raw}, [][]float64{{1 - 4./3, 0, 1 - 4./3, 0}, {-4. / 3}, {0}}},
	} {
		got, err := TokenAdvantages(groups, c.e)
		require.NoError(t, err)
		for i := range c.want {
			require.InDeltaSlice(t, c.want[i], got[0][i], 1e-15, c.reason)
		}
	}
	white, err := TokenAdvantages(groups, TokenEstimator{Center: centerNone})
	require.NoError(t, err)
	require.InDelta(t, 0, 2*white[0][0][0]+white[0][1][0], 1e-12, "whitened values sum to 0 over trained tokens")
	for _, bad := range []TokenEstimator{{Center: centerEMA}, {Discount: 2}, {Discount: 0.5}, {Whiten: Whiten{Epsilon: math.NaN()}}} {
		_, err := TokenAdvantages(groups, bad)
		require.ErrorIs(t, err, rollout.KindInput)
	}
	_, err = TokenAdvantages([]TokenGroup{{Rollouts: []TokenRollout{{Reward: math.NaN()}}}}, TokenEstimator{})
	require.ErrorIs(t, err, rollout.KindInput)
	for _, e := range TokenPresets() {
		require.NoError(t, e.Validate(), e.Name)
		_, ok := TokenPreset(e.Name)
		require.True(t, ok)
	}
	seq, _ := turns()
	credited, err := credit(seq, func(token int) float64 { return []float64{9, 1, 2, 3}[token] })
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 2, 3}, credited.Credit)
}

func TestNormalizeThenSum(t *testing.T) {
	groups := []ComponentGroup{{Key: "a", Rewards: [][]*float64{{ptr(1.0), nil}, {ptr(0.0), ptr(2.0)}}}}
	got, err := NormalizeThenSum(groups, []float64{1, 5}, Estimator{})
	require.NoError(t, err)
	require.InDelta(t, -got[0][1].Value, got[0][0].Value, 1e-12)
	require.Positive(t, got[0][0].Value, "the second component is given once and compares with nothing")
	without := got[0]
	groups[0].Rewards = append(groups[0].Rewards, []*float64{nil, nil})
	got, err = NormalizeThenSum(groups, []float64{1, 5}, Estimator{})
	require.NoError(t, err)
	require.Equal(t, append(without, Advantage{}), got[0], "a rollout without any reward moves no other")
	_, err = NormalizeThenSum(groups, []float64{1}, Estimator{})
	require.ErrorIs(t, err, rollout.KindInput)
}

// AReaL's edge cases: the leave-one-out mean of a group of one is 0, its deviation with n − 1 is 1,
// and rows beyond the last slice have neither.
func TestArealEdges(t *testing.T) {
	one := advantages(t, ArealNorm(1, "", "", true, true), group("a", 3), group("b", -2))
	require.InDelta(t, 3/(1+1e-5), one[0][0], 1e-12)
	require.InDelta(t, -2/(1+1e-5), one[1][0], 1e-12)
	plain := advantages(t, ArealNorm(1, "", "", false, false), group("a", 3))
	require.Zero(t, plain[0][0])
	tail := advantages(t, ArealNorm(2, "", "", false, true), group("a", 1, 0), group("b", 0.5))
	require.InDelta(t, 0.5/1e-5, tail[1][0], 1e-6)
}

func TestEMA(t *testing.T) {
	e, _ := Preset("prime_rae")
	stream := []GroupRewards{{"a", []RolloutReward{{ID: "1", Reward: 1}}}, {"b", []RolloutReward{{ID: "2", Reward: 4}}}, {"a", []RolloutReward{{ID: "3", Reward: 1}}}}
	got := advantages(t, e, stream...)
	require.Equal(t, []float64{1}, got[0], "the first reward meets a baseline of 0")
	require.Equal(t, []float64{4}, got[1], "each key has a baseline of its own")
	require.InDelta(t, 1-0.05, got[2][0], 1e-15)
}

// A row alone in its group is not compared and must not reduce the batch's deviation.
func TestNormalizeLeavesSingletonsOut(t *testing.T) {
	e := Estimator{Center: centerLeaveOneOut, Divisor: divideNone, Normalize: true}
	without := advantages(t, e, group("a", 1, 0, 0))
	with := advantages(t, e, group("a", 1, 0, 0), group("b", 5))
	require.Equal(t, without[0], with[0])
	require.Equal(t, []float64{0}, with[1])
}
