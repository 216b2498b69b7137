package offpolicy

import (
	"errors"
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// Estimator is a per-token estimate of the divergence between the policies,
// with r = ρ clamped to e^±20.
type Estimator uint8

// The estimators.
const (
	K1 Estimator = iota // −log r, signed
	K2                  // (log r)² / 2
	K3                  // r − 1 − log r
)

// Over says what an estimate is taken over before it is compared.
type Over uint8

// The choices. All but OverToken reject whole rows.
const (
	OverToken Over = iota
	OverSum
	OverMean
	OverMax
)

// Rejection keeps what lies within its bounds. For K1 they are bounds on the
// ratio: the statistic must lie in [log Low, log High], and because K1 is −log r
// they bind 1/ρ. For K2 and K3 High bounds the divergence and Low is not used.
type Rejection struct {
	Estimator Estimator
	Over      Over
	Low, High float64 // Low 0 = 1/High
}

// Validate reports every fault of r at once.
func (r Rejection) Validate() error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, format, args...))
	}
	if r.Estimator > K3 || r.Over > OverMax {
		fault("Estimator", "estimator %d over %d: unknown value", r.Estimator, r.Over)
	}
	if r.Estimator == K1 && r.Over == OverMax {
		fault("Over", "the maximum of a signed estimate bounds one side only: use K2 or K3")
	}
	if !(r.High > 0) || math.IsInf(r.High, 0) {
		fault("High", "%g is not a finite number > 0", r.High)
	}
	if !(r.Low >= 0) || r.Low > r.High {
		fault("Low", "%g is not in [0, %g]", r.Low, r.High)
	}
	return errors.Join(faults...)
}

// Keep returns the masks of rows after all rejections (verl's
// compute_rollout_rejection_mask, 1dda039b9).
func Keep(rows []Row, rules ...Rejection) ([][]bool, error) {
	var faults []error
	for _, r := range rules {
		faults = append(faults, r.Validate())
	}
	if err := errors.Join(append(faults, check(rows))...); err != nil {
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
	if r.Over == OverToken {
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
	case OverMean:
		statistic = sum / (n + 1e-8)
	case OverMax:
		statistic = most
	}
	if n == 0 || r.within(statistic) {
		return
	}
	for t := range keep {
		keep[t] = false
	}
}

func (r *Rejection) token(row Row, t int) float64 {
	d := math.Min(math.Max(row.Train[t]-row.Rollout[t], -verlBound), verlBound)
	switch r.Estimator {
	case K1:
		return -d
	case K2:
		return 0.5 * d * d
	}
	return math.Exp(d) - 1 - d
}

func (r *Rejection) within(x float64) bool {
	if r.Estimator != K1 {
		return x <= r.High
	}
	low := r.Low
	if low == 0 {
		low = 1 / r.High
	}
	return x >= math.Log(low) && x <= math.Log(r.High)
}
