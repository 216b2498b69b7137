package audit

import (
	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/internal/col"
)

// Drift says how far a trainer's own log probabilities are from those recorded at sampling,
// over the trained tokens that have both.
type Drift struct {
	Tokens  int64   `json:"tokens"`
	Mean    float64 `json:"mean"`    // mean absolute difference
	Beyond  int64   `json:"beyond"`  // tokens that differ by more than 0.001
	Largest float64 `json:"largest"` // largest absolute difference
}

// Share returns the share of tokens that differ by more than 0.001.
func (d *Drift) Share() float64 { return float64(d.Beyond) / float64(max(1, d.Tokens)) }

// driftRow is the mean difference above which logprob-drift reports a row: several times what
// 16-bit arithmetic explains.
const driftRow = 0.05

// driftOf returns nil if no token has both log probabilities.
func driftOf(a *anyrows.Apart) *Drift {
	if a.Tokens == 0 {
		return nil
	}
	return &Drift{a.Tokens, a.Sum / float64(a.Tokens), a.Beyond, a.Largest}
}

func (a *auditor) drift(r *anyrows.Row) {
	a.apart.Add(r)
	var own anyrows.Apart
	own.Add(r)
	if d := driftOf(&own); d != nil && d.Mean > driftRow {
		a.report(r, "logprob-drift", col.Logprobs, own.First, int(d.Beyond), "%.4g where %.4g is recorded; the mean difference is %.3g, and %d of %d trained tokens are off by more than %g",
			r.TrainLogprobs[own.First], r.Logprobs[own.First], d.Mean, d.Beyond, d.Tokens, anyrows.ApartBound)
	}
}
