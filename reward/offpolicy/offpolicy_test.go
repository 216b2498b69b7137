package offpolicy

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// rows returns a row with the ratios 2 and ½ and a tool token between them, and a row without trained
// tokens.
func rows() []Row {
	ln2 := math.Ln2
	return []Row{
		{Mask: []bool{true, false, true}, Train: []float64{-1, -9, -1 - ln2}, Rollout: []float64{-1 - ln2, -9 - ln2, -1}},
		{Mask: []bool{false}, Train: []float64{-1}, Rollout: []float64{-1}},
	}
}

func TestWeights(t *testing.T) {
	for _, c := range []struct {
		reason string
		c      Correction
		want   []float64
	}{
		{"no bounds", Correction{}, []float64{2, 0, 0.5}},
		{"clamped", Correction{Low: 0.75, High: 1.5}, []float64{1.5, 0, 0.75}},
		{"outside is 0", Correction{Low: 0.75, High: 2, Drop: true}, []float64{2, 0, 0}},
		{"the product of the row", Correction{Sequence: true}, []float64{1, 0, 1}},
		{"untrained tokens as ratio 1", Correction{High: 1.5, Untrained: "unit"}, []float64{1.5, 1, 0.5}},
		{"untrained tokens with their own ratio", Correction{High: 1.5, Untrained: "ratio"}, []float64{1.5, 1.5, 0.5}},
		{"mean 1", Correction{Normalize: true}, []float64{1.6, 0, 0.4}},
		{"a bounded logarithm", Correction{MaxLog: 0.1}, []float64{math.Exp(0.1), 0, math.Exp(-0.1)}},
	} {
		got, err := Weights(rows(), c.c)
		require.NoError(t, err)
		require.InDeltaSlice(t, c.want, got[0], 1e-12, c.reason)
	}
}

func TestNothingToNormalize(t *testing.T) {
	c := Correction{Low: 1.9, High: 1.95, Drop: true, Normalize: true}
	for _, c.Sequence = range []bool{false, true} {
		got, err := Weights(rows(), c)
		require.NoError(t, err)
		require.Equal(t, []float64{0, 0, 0}, got[0])
	}
}

func TestKeep(t *testing.T) {
	for _, c := range []struct {
		reason string
		rule   Rejection
		want   []bool
	}{
		{"k1 binds the inverse ratio from below", Rejection{Estimator: "k1", Low: 0.75, High: 4}, []bool{false, false, true}},
		{"both sides by default", Rejection{Estimator: "k1", High: 1.5}, []bool{false, false, false}},
		{"k2 of ln 2 is 0.24", Rejection{Estimator: "k2", High: 0.25}, []bool{true, false, true}},
		{"k3 is not symmetric", Rejection{Estimator: "k3", High: 0.2}, []bool{false, false, true}},
		{"the row's sum is 0", Rejection{Estimator: "k1", Over: "sum", High: 1.01}, []bool{true, false, true}},
		{"the row's mean", Rejection{Estimator: "k3", Over: "mean", High: 0.2}, []bool{false, false, false}},
		{"the row's worst token", Rejection{Estimator: "k2", Over: "max", High: 0.2}, []bool{false, false, false}},
	} {
		got, err := Keep(rows(), c.rule)
		require.NoError(t, err)
		require.Equal(t, c.want, got[0], c.reason)
		require.Equal(t, []bool{false}, got[1])
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []Correction{{Untrained: "mean"}, {Low: 2, High: 1}, {High: math.NaN()}, {MaxLog: -1}} {
		_, err := Weights(rows(), c)
		require.ErrorIs(t, err, rollout.KindInput)
	}
	for _, r := range []Rejection{{}, {Estimator: "k9", High: 1}, {Estimator: "k2", Over: "min", High: 1}, {Estimator: "k1", High: 1, Low: 2}, {Estimator: "k1", Over: "max", High: 1}} {
		_, err := Keep(rows(), r)
		require.ErrorIs(t, err, rollout.KindInput)
	}
	for _, r := range []Row{{Mask: []bool{true}}, {Mask: []bool{true}, Train: []float64{math.Inf(-1)}, Rollout: []float64{0}}} {
		_, err := Weights([]Row{r}, Correction{})
		require.ErrorIs(t, err, rollout.KindInput)
	}
}

// A ratio that overflows, or the ratio of an untrained token without a probability, would enter the
// loss as infinity or NaN, which a mask of 0 does not remove.
func TestWeightsAreFiniteOrRefused(t *testing.T) {
	far := []Row{{Mask: []bool{true, false}, Train: []float64{-1, -1}, Rollout: []float64{-1000, math.NaN()}}}
	_, err := Weights(far, Correction{})
	require.ErrorContains(t, err, "no finite weight")
	w, err := Weights(far, Correction{High: 2})
	require.NoError(t, err)
	require.Equal(t, [][]float64{{2, 0}}, w)
	_, err = Weights(far, Correction{High: 2, Untrained: "ratio"})
	require.ErrorIs(t, err, rollout.KindInput)
}
