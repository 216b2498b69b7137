package offpolicy

import (
	"cmp"
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/faults"
)

// Rejection keeps tokens or rows whose estimated divergence between the policies lies within its
// bounds. The estimate of a token uses r = ρ clamped to e^±20.
type Rejection struct {
	// Estimator selects the estimate: "k1", −log r, signed; "k2", (log r)² / 2; "k3", r − 1 − log r.
	Estimator string
	// Over selects what is compared with the bounds: "", the estimate of each token; "sum", "mean" or
	// "max", that statistic of the row's estimates, which rejects the whole row.
	Over string
	// Low and High bound the ratio for k1: the statistic must lie in [log Low, log High], and because
	// k1 is −log r they bound 1/ρ. For the other estimators High bounds the divergence, and Low is not
	// used. Low 0 = 1/High.
	Low, High float64
}

func (r Rejection) validate() error {
	var f faults.List
	if !slices.Contains([]string{"k1", "k2", "k3"}, r.Estimator) {
		f.Add("Estimator", "found %q, expected k1, k2 or k3", r.Estimator)
	}
	faults.Word(&f, "Over", r.Over, "sum", "mean", "max")
	if r.Estimator == "k1" && r.Over == "max" {
		f.Add("Over", "the maximum of a signed estimate bounds one side only: use k2 or k3")
	}
	if !(r.High > 0) || math.IsInf(r.High, 0) {
		f.Add("High", "%g is not a finite number > 0", r.High)
	}
	if !(r.Low >= 0) || r.Low > r.High {
		f.Add("Low", "%g is not in [0, %g]", r.Low, r.High)
	}
	return f.Err()
}

// Keep returns the masks of rows after applying all rules (verl's compute_rollout_rejection_mask,
// 1dda039b9).
func Keep(rows []Row, rules ...Rejection) ([][]bool, error) {
	var f faults.List
	for _, r := range rules {
		f.Join(r.validate())
	}
	f.Join(checkRows(rows))
	if err := f.Err(); err != nil {
		return nil, err
	}
	out := make([][]bool, len(rows))
	for i, r := range rows {
		out[i] = append([]bool(nil), r.Mask...)
		for _, rule := range rules {
			rule.apply(r, out[i])
		}
	}
	return out, nil
}

func (r *Rejection) apply(row Row, keep []bool) {
	if r.Over == "" {
		for t, on := range row.Mask {
			if on && !r.within(r.token(row, t)) {
				keep[t] = false
			}
		}
		return
	}
	sum, n, most := 0.0, 0.0, math.Inf(-1)
	for t, on := range row.Mask {
		if on {
			v := r.token(row, t)
			sum, most = sum+v, math.Max(most, v)
			n++
		}
	}
	statistic := sum
	switch r.Over {
	case "mean":
		statistic = sum / (n + 1e-8)
	case "max":
		statistic = most
	}
	if !r.within(statistic) {
		clear(keep)
	}
}

func (r *Rejection) token(row Row, t int) float64 {
	d := math.Min(math.Max(row.Train[t]-row.Rollout[t], -verlBound), verlBound)
	switch r.Estimator {
	case "k1":
		return -d
	case "k2":
		return 0.5 * d * d
	}
	return math.Exp(d) - 1 - d
}

func (r *Rejection) within(x float64) bool {
	if r.Estimator != "k1" {
		return x <= r.High
	}
	low := cmp.Or(r.Low, 1/r.High)
	return x >= math.Log(low) && x <= math.Log(r.High)
}
