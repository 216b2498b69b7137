package shaped

import (
	"math"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// Rules applies shaping.Rules.
type Rules shaping.Rules

// Reasons and names of rules, as used in reports and rows.
const (
	ruleTruncated = "truncated"
	ruleStop      = "did not stop"
	ruleSoft      = "soft overlong"
	ruleAffine    = "scaled"
	ruleClip      = "reward clip"

	reasonStale       = "older than the maximum age"
	reasonFewValid    = "too few valid rollouts"
	reasonFewSolved   = "too few solved"
	reasonFewUnsolved = "too few unsolved"
	ReasonZero        = "advantage is 0"
)

// reasonLogprobError is the reason for masking a row by MaxError.
const reasonLogprobError = "log probabilities differ too much"

// Reasons why shaping.Keep rejects a rollout.
const (
	reasonRejected = "rejected by its reward"
	reasonNotBest  = "not among the best of its group"
)

// On reports whether any rule is set.
func (r Rules) On() bool {
	return r.Shapes() || r.Decides() || r.MaskTruncated || r.DropZero || r.OffPolicy != nil
}

// Shapes reports whether r changes rewards of single rollouts.
func (r Rules) Shapes() bool {
	return r.TruncatedCoef != nil || r.StopProperly || r.Soft != nil || r.Affine != (shaping.Affine{}) || r.Clip != nil
}

// Decides reports whether r needs whole groups: it may leave groups or rollouts out, or change rewards
// depending on other rewards.
func (r Rules) Decides() bool {
	return r.MaxAge != nil || r.Spending != nil || r.MinValid > 0 || r.MinSolved > 0 || r.MinUnsolved > 0 || r.Filter != nil || selects(&r.Keep)
}

// CountsTokens reports whether r needs the length of rollouts.
func (r Rules) CountsTokens() bool { return r.Soft != nil || r.Spending != nil }

// Facts holds the input of Shape in addition to the reward.
type Facts struct {
	Status       rollout.Status
	FinishReason string // finish reason of the last turn, "" if unknown
	Length       int    // tokens, counted as Rules.ResponseLength defines
}

// FactsOf returns the facts that r records; Length is left 0, since it is known only with the rows.
func FactsOf(r *rollout.Rollout) Facts {
	if r == nil {
		return Facts{}
	}
	f := Facts{Status: r.Status}
	if turns := rollout.TurnsOf(r); len(turns) > 0 {
		f.FinishReason = turns[len(turns)-1].FinishReason
	}
	return f
}

// finish returns the recorded finish reason, or the one implied by the status, "" if neither is known.
func (f *Facts) finish() string {
	switch {
	case f.FinishReason != "":
		return f.FinishReason
	case f.Status == rollout.StatusCompleted:
		return "stop"
	case f.Status == rollout.StatusTruncated:
		return "length"
	}
	return ""
}

// Masks returns the reason why StopProperly masks all rows of a rollout, "" if it does not.
func (r *Rules) Masks(f Facts) string {
	if r.StopProperly && f.finish() != "stop" {
		return ruleStop
	}
	return ""
}

// Applied is a rule that changed a reward, with the amount.
type Applied struct {
	Rule string  `json:"rule"`
	By   float64 `json:"by"`
}

// Shape returns the reward of a rollout after the rules, and the rules that changed it.
func (r *Rules) Shape(total float64, f Facts) (float64, []Applied) {
	var applied []Applied
	step := func(rule string, value float64) {
		if value != total {
			applied = append(applied, Applied{rule, value - total})
			total = value
		}
	}
	if r.TruncatedCoef != nil {
		step(ruleTruncated, Truncated(total, f.Status == rollout.StatusTruncated, *r.TruncatedCoef))
	}
	if r.StopProperly {
		rewards, _ := ZeroOnNonStop(f.finish(), []float64{total}, nil)
		step(ruleStop, rewards[0])
	}
	if r.Soft != nil {
		step(ruleSoft, total+r.Soft.Punishment(f.Length))
	}
	if r.Affine != (shaping.Affine{}) {
		step(ruleAffine, applyAffine(r.Affine, total))
	}
	if r.Clip != nil {
		step(ruleClip, math.Min(math.Max(total, r.Clip.Low), r.Clip.High))
	}
	return total, applied
}

// Solved reports whether a scored rollout solved its task: by its verdict if one is recorded, else by
// an outcome of 1 or more. It returns nil if the rollout has no reward.
func Solved(scored rollout.Reward) *bool {
	if scored.Excluded != "" {
		return nil
	}
	solved := scored.Verdict == rollout.VerdictResolved || reward.OnlyScalar(scored.Verdict) && scored.Outcome >= 1
	return &solved
}

func applyAffine(a shaping.Affine, x float64) float64 {
	if a.Scale == 0 {
		return x + a.Bias
	}
	return (x + a.Bias) * a.Scale
}
