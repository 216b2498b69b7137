package prm

import (
	"errors"
	"math"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Missing says what a step without a score does to the mean.
type Missing uint8

// The rules.
const (
	MissingSkip    Missing = iota // it leaves the mean
	MissingZero                   // it counts as 0 (OpenClaw-RL@0d034dd5e)
	MissingExclude                // the rollout has no combined reward
)

// Combination is outcome + coef × mean(step scores).
type Combination struct {
	// Coef weighs the mean; nil means 1.
	Coef    *float64
	Missing Missing
}

// Validate reports all faults at once.
func (c Combination) Validate() error {
	var faults []error
	if c.Coef != nil && !finite(*c.Coef) {
		faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Combination.Coef"}, "%g is not finite", *c.Coef))
	}
	if c.Missing > MissingExclude {
		faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Combination.Missing"}, "value %d is none of the known rules", c.Missing))
	}
	return errors.Join(faults...)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (c Combination) coef() float64 {
	if c.Coef == nil {
		return 1
	}
	return *c.Coef
}

// Combine returns the reward of a rollout from its outcome and its step scores,
// in any order. Without a step the total is the outcome and Step is nil. Steps
// that were left out on purpose ([Skipped]) are not missing.
func (c Combination) Combine(outcome float64, scores []rollout.StepScore) rollout.Reward {
	r := rollout.Reward{Total: outcome, Outcome: outcome}
	mean, n, missing := 0.0, 0, 0
	for _, s := range byStep(scores) {
		switch {
		case s.Score != nil:
			mean += *s.Score
			n++
		case Skipped(s):
		case c.Missing == MissingZero:
			n++
		default:
			missing++
		}
	}
	if missing > 0 && c.Missing == MissingExclude {
		r.Excluded = "step_scores_missing"
		return r
	}
	if n > 0 {
		mean /= float64(n)
		r.Step = &mean
		r.Total = outcome + c.coef()*mean
	}
	return r
}

func byStep(scores []rollout.StepScore) []rollout.StepScore {
	out := slices.Clone(scores)
	slices.SortStableFunc(out, func(a, b rollout.StepScore) int { return a.Step - b.Step })
	return out
}

// skippedPrefix opens the reason of a step that was left out on purpose.
const skippedPrefix = "skipped: "

// Skipped reports whether a step was left out by policy, as opposed to judged
// in vain.
func Skipped(s rollout.StepScore) bool {
	return s.Score == nil && len(s.Reason) >= len(skippedPrefix) && s.Reason[:len(skippedPrefix)] == skippedPrefix
}

// Spans returns the half-open runs [start, end) of non-zero entries of a mask.
func Spans(mask []int) [][2]int {
	spans := [][2]int{}
	for i := 0; i < len(mask); i++ {
		if mask[i] == 0 {
			continue
		}
		start := i
		for i < len(mask) && mask[i] != 0 {
			i++
		}
		spans = append(spans, [2]int{start, i})
	}
	return spans
}
