package reward

import (
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// Credit returns seq with its Credit column set to advantage where Weight > 0 and to 0 elsewhere. The
// sequence must have loss weights (apply a lossmask first).
func Credit(seq rollout.Sequence, advantage float64) (rollout.Sequence, error) {
	return credit(seq, func(int) float64 { return advantage })
}

// credit returns seq with the credit of each trained token set to at(index of the token).
func credit(seq rollout.Sequence, at func(token int) float64) (rollout.Sequence, error) {
	if seq.Weight == nil {
		return seq, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Field: "Weight"},
			"the sequence has no loss weights, so its trained tokens are not known").
			WithFix("apply a loss mask first")
	}
	if err := aligned(&seq, "Weight", len(seq.Weight)); err != nil {
		return seq, err
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

// aligned returns an error unless a column of n entries has one entry per token.
func aligned(seq *rollout.Sequence, column string, n int) error {
	if n != seq.Len() {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Field: column}, "the column has %d entries for %d tokens", n, seq.Len())
	}
	return nil
}
