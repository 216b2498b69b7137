package prm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Combination defines the combined reward: outcome + coef × mean(step scores).
type Combination struct {
	// Coef is the weight of the mean; nil means 1.
	Coef *float64
	// Missing selects the treatment of a step without a score: "", it is left out of the mean; "zero",
	// it counts as 0 (OpenClaw-RL@0d034dd5e).
	Missing string
}

func (c Combination) validate() error {
	f := faults.List{Of: "Combination."}
	if k := c.coef(); k-k != 0 {
		f.Add("Coef", "%g is not finite", k)
	}
	faults.Word(&f, "Missing", c.Missing, "zero")
	return f.Err()
}

func (c Combination) coef() float64 {
	if c.Coef == nil {
		return 1
	}
	return *c.Coef
}

// Combine returns the reward of a rollout from its outcome and its step scores, in any order. Without
// steps the total is the outcome and Step is nil. Steps that were left out on purpose ([Skipped]) do
// not count as missing. A rollout whose total is not finite is excluded with the reason, and so is
// every rollout if c is invalid.
func (c Combination) Combine(outcome float64, scores []rollout.StepScore) rollout.Reward {
	if err := c.validate(); err != nil {
		return rollout.Reward{Excluded: "no combined reward", Reason: err.Error()}
	}
	r := rollout.Reward{Total: outcome, Outcome: outcome}
	mean, n := 0.0, 0
	// Sorted by step, since a sum of floats depends on the order.
	for _, s := range slices.SortedStableFunc(slices.Values(scores), func(a, b rollout.StepScore) int { return a.Step - b.Step }) {
		switch {
		case s.Score != nil:
			mean += *s.Score
			n++
		case c.Missing == "zero" && !Skipped(s):
			n++
		}
	}
	if n > 0 {
		mean /= float64(n)
		r.Step = &mean
		r.Total = outcome + c.coef()*mean
	}
	if r.Total-r.Total != 0 {
		return rollout.Reward{Excluded: "no combined reward", Reason: fmt.Sprintf("the total is %g", r.Total)}
	}
	return r
}

// skippedPrefix is the prefix of the reason of a step that was left out on purpose.
const skippedPrefix = "skipped: "

// Skipped reports whether a step was left out on purpose (StepOptions), as opposed to judged without a
// valid vote.
func Skipped(s rollout.StepScore) bool {
	return s.Score == nil && strings.HasPrefix(s.Reason, skippedPrefix)
}
