package shaping

import (
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// Spending is prime-rl's linear length penalty (559b44772): each reward is reduced by the group's mean
// reward times a weighted sum of its output tokens, its input tokens (total − output) and its turns,
// each as a share of the group's largest. A group that solves nothing is not penalised. prime-rl uses
// the mean as a pass rate: a mean below 0 would turn the penalty into a bonus for length and is
// refused.
type Spending struct{ Output, Input, Turns float64 }

// validate returns an error for a weight that is not a finite number of 0 or more.
func (s Spending) validate() error {
	for _, w := range []float64{s.Output, s.Input, s.Turns} {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Shaping.Spending"}, "found %g, expected finite weights of 0 or more", w)
		}
	}
	return nil
}
