package shaping

import (
	"math"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/rollout"
)

// OffPolicy bounds the difference between the training policy and the behaviour policy, which sampled
// a row. Both sides are natural-log probabilities of the row's tokens.
type OffPolicy struct {
	// Weights multiplies the loss weights of trained tokens by their bounded importance ratio; nil =
	// off.
	Weights *offpolicy.Correction
	// MaxError masks a row whose mean of exp(|train − rollout|) over its trained tokens exceeds it
	// (NeMo RL 7ea279abf, seq_logprob_error_threshold); 0 = no limit.
	MaxError float64
}

func (o OffPolicy) validate() error {
	f := faults.List{Of: "Shaping.OffPolicy."}
	if o.Weights != nil {
		f.Join(o.Weights.Validate())
		if o.Weights.Normalize {
			f.Join(rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Shaping.OffPolicy.Weights.Normalize"}, "a mean over the batch, and rows go through one by one").
				WithFix("use offpolicy.Weights on the whole batch"))
		}
	}
	if o.MaxError != 0 && !(o.MaxError >= 1) || math.IsInf(o.MaxError, 0) {
		f.Add("MaxError", "found %g, expected a finite number of 1 or more, or 0 for no limit", o.MaxError)
	}
	return f.Err()
}
