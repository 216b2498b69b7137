package filter

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

func repeat(x float64, n int) []float64 { return slices.Repeat([]float64{x}, n) }

func keep(t *testing.T, r Rule, groups ...Group) []bool {
	t.Helper()
	d, _, err := Apply(groups, r)
	require.NoError(t, err)
	out := make([]bool, len(d))
	for i := range d {
		out[i] = d[i].Keep
		require.Equal(t, d[i].Keep, d[i].Reason == "", "a dropped group has a reason, a kept one none")
	}
	return out
}

func TestDefaultSeesThroughRounding(t *testing.T) {
	require.Equal(t, []bool{false, false, false, true, false}, keep(t, Rule{},
		Group{Rewards: repeat(0.7, 8)}, Group{Rewards: repeat(0.1, 16)},
		Group{Rewards: []float64{0.3, float64(float32(0.3))}}, Group{Rewards: []float64{1, 1, 0}}, Group{Rewards: []float64{1}}))
	for _, r := range Presets() {
		if r.Test == testFloat32 {
			require.Equal(t, []bool{true, true}, keep(t, r, Group{Rewards: repeat(0.7, 8)}, Group{Rewards: repeat(0.1, 16)}),
				"the system keeps what its rounding makes of equal rewards")
		}
	}
}

func TestRules(t *testing.T) {
	live := Group{Rewards: []float64{1, 0, 0, 0}, Live: []bool{false, true, true, true}}
	for _, c := range []struct {
		reason string
		rule   Rule
		group  Group
		want   Decision
	}{
		{"the only success is not live", Rule{LiveOnly: true}, live, Decision{Reason: reasonAlike}},
		{"unless all are looked at", Rule{}, live, Decision{Keep: true}},
		{"too few live", Rule{MinLive: 4}, live, Decision{Reason: reasonFewLive}},
		{"too hard", Rule{Band: &reward.Range{Low: 0.1, High: 0.9}}, live, Decision{Reason: reasonTooHard}},
		{"too easy", Rule{Band: &reward.Range{Low: 0.1, High: 0.7}}, Group{Rewards: []float64{1, 1, 1, 0}}, Decision{Reason: reasonTooEasy}},
		{"inside the band", Rule{Band: &reward.Range{Low: 0.25, High: 0.25}}, Group{Rewards: []float64{1, 0, 0, 0}}, Decision{Keep: true}},
		{"on the edge of the band, whatever tenths add up to", Rule{Band: &reward.Range{Low: 0.1, High: 0.3}}, Group{Rewards: append(repeat(1, 3), repeat(0, 7)...)}, Decision{Keep: true}},
		{"a single reward may stay", Rule{KeepSingle: true}, Group{Rewards: []float64{1}}, Decision{Keep: true}},
		{"an empty group has no signal", Rule{}, Group{}, Decision{Reason: reasonAlike}},
		{"one by one: the row whose absence makes the rest constant goes", Rule{Test: rowDeviation},
			Group{Rewards: []float64{1, 0, 0}}, Decision{Keep: true, Rows: []bool{false, true, true}}},
		{"all at once", Rule{Test: rowDeviationGroup}, Group{Rewards: []float64{1, 0, 0}}, Decision{Keep: true, Rows: []bool{true, true, true}}},
		{"rows that are not live keep their place", Rule{Test: rowDeviationGroup, LiveOnly: true},
			Group{Rewards: []float64{0, 1, 0, 1}, Live: []bool{false, true, true, false}}, Decision{Keep: true, Rows: []bool{false, true, true, false}}},
		{"nothing left", Rule{Test: rowDeviation}, Group{Rewards: []float64{1, 0}}, Decision{Reason: ReasonRow, Rows: []bool{false, false}}},
	} {
		got, _, err := Apply([]Group{c.group}, c.rule)
		require.NoError(t, err)
		require.Equal(t, c.want, got[0], c.reason)
	}
}

func TestKeepAtLeast(t *testing.T) {
	dull := Group{Rewards: repeat(1, 4)}
	d, takenBack, err := Apply([]Group{dull, dull, dull}, Rule{KeepAtLeast: 2})
	require.NoError(t, err)
	require.Equal(t, []Decision{{Keep: true}, {Keep: true}, {Reason: reasonAlike}}, d)
	require.Equal(t, 2, takenBack)
}

func TestFaults(t *testing.T) {
	for _, r := range []Rule{{Test: "99"}, {Tolerance: math.NaN()}, {Tolerance: 1, Exact: true}, {MinLive: -1}, {Band: &reward.Range{Low: 1, High: 0}}} {
		_, _, err := Apply(nil, r)
		require.ErrorIs(t, err, rollout.KindInput)
	}
	for _, g := range []Group{{Rewards: []float64{math.NaN()}}, {Rewards: []float64{1}, Live: []bool{true, true}}} {
		_, _, err := Apply([]Group{g}, Rule{})
		require.ErrorIs(t, err, rollout.KindInput)
	}
	for _, r := range Presets() {
		require.NoError(t, r.Validate(), r.Name)
	}
}

func TestATestThatHasNoToleranceRefusesOne(t *testing.T) {
	for _, r := range []Rule{{Test: "deviation_float32", Tolerance: 0.1}, {Test: "row_deviation", Exact: true}} {
		require.ErrorContains(t, r.Validate(), "Tolerance")
	}
}
