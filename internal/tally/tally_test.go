package tally

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/overview"
	"github.com/turnpack/turnpack/rollout"
)

func ExampleTally() {
	solved, failed := true, false
	var t Tally
	for i, s := range []*bool{&solved, &failed, &failed, nil} {
		t.Add(Facts{Group: 0, Status: rollout.StatusCompleted, Solved: s, Steps: 10 + i})
	}
	b := t.Batch()
	fmt.Printf("%.2f %v %.1f\n", b.ResolveRate(), b.Solves, b.Steps.Mean)
	// Output: 0.33 [{1 3 1}] 11.5
}

func TestTally(t *testing.T) {
	one, half, yes, no := 1.0, 0.5, true, false
	var x Tally
	x.Add(Facts{Group: 0, Status: rollout.StatusTruncated, Solved: &yes, Reward: &one, Steps: 3, Rows: 2, Tokens: 100, Trained: 20, Advantage: &half})
	x.Add(Facts{Group: 0, Status: rollout.StatusCompleted, Solved: &no, Reward: &half, Steps: 5})
	x.Add(Facts{Group: 1, Status: rollout.StatusFailed, Steps: 1})
	x.Add(Facts{Group: 2, Status: rollout.StatusCompleted, Solved: &no, Reward: &half, Steps: 7, Rows: 1, Tokens: 50, Trained: 10})
	b := x.Batch()
	require.Equal(t, []overview.Solves{{Of: 1, Groups: 1}, {Solved: 1, Of: 2, Groups: 1}}, b.Solves)
	require.Equal(t, 1./3, b.ResolveRate())
	require.Equal(t, 0.25, b.TruncatedShare())
	require.Equal(t, overview.Distribution{N: 3, Mean: 2. / 3, Std: math.Sqrt(1. / 12), Min: 0.5, P10: 0.5, Median: 0.5, P90: 0.9, Max: 1}, b.Reward)
	require.Equal(t, 4., b.Steps.Median, "of 1, 3, 5 and 7")
	require.Equal(t, 4, b.Steps.N)
	require.Equal(t, 2, b.Tokens.N, "rollouts without rows have no length")
	require.Equal(t, overview.Distribution{N: 1, Mean: 0.5, Min: 0.5, P10: 0.5, Median: 0.5, P90: 0.5, Max: 0.5}, b.Advantage)
	require.Zero(t, (&Tally{}).Batch().Reward)
}

// Beyond sampleSize, quantiles are those of an evenly spaced sample of the values.
func TestSampleIsEven(t *testing.T) {
	var s sample
	const n = 300_000
	for i := range n {
		s.add(float64(i))
	}
	d := s.distribution()
	require.LessOrEqual(t, len(s.kept), sampleSize)
	require.Equal(t, n, d.N)
	require.Equal(t, float64(n-1), d.Max)
	for got, want := range map[float64]float64{d.P10: 0.1 * n, d.Median: 0.5 * n, d.P90: 0.9 * n, d.Mean: 0.5 * n} {
		require.InEpsilon(t, want, got, 1e-3)
	}
}
