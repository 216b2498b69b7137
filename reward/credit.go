package reward

import (
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// Credit spreads a rollout's advantage over the trained tokens of one of its
// sequences: Credit is advantage where Weight > 0 and 0 elsewhere. The sequence
// must have weights (lossmask first).
func Credit(seq rollout.Sequence, advantage float64) (rollout.Sequence, error) {
	return credit(seq, func(int) float64 { return advantage })
}

// credit sets the credit of each trained token to at(its offset).
func credit(seq rollout.Sequence, at func(token int) float64) (rollout.Sequence, error) {
	if seq.Weight == nil {
		return seq, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Field: "Weight"},
			"the sequence has no loss weights, so its trained tokens are not known").
			WithFix("apply a loss mask first")
	}
	column := make([]float32, len(seq.IDs))
	for i, w := range seq.Weight {
		if w <= 0 {
			continue
		}
		v := at(i)
		if !(math.Abs(v) <= math.MaxFloat32) {
			return seq, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Token: rollout.At(i), Field: "Credit"},
				"advantage %g is not a finite float32", v)
		}
		column[i] = float32(v)
	}
	return seq.WithCredit(column)
}

// MeanCredit is the mean credit of the trained tokens, which is that of each where a row
// has one step; 0 of none.
func MeanCredit(seq *rollout.Sequence) float64 {
	sum, n, first := 0.0, 0, float32(0)
	alike := true
	for i, w := range seq.Weight {
		if w > 0 {
			if n == 0 {
				first = seq.Credit[i]
			}
			alike = alike && seq.Credit[i] == first
			sum, n = sum+float64(seq.Credit[i]), n+1
		}
	}
	if alike || n == 0 {
		return float64(first)
	}
	return sum / float64(n)
}
