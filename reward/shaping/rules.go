package shaping

import (
	"math"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
)

// Rules are what a batch goes through between its scores and its advantages. The
// zero value does nothing. Rewards are changed in the order of the fields.
type Rules struct {
	// TruncatedCoef multiplies the reward of a truncated rollout; nil = 1
	// (NeMo RL's stop_properly penalty, 7ea279abf).
	TruncatedCoef *float64
	// StopProperly gives a rollout whose last turn did not finish with "stop" the
	// reward 0 and no trained token (SkyRL's zero_reward_on_non_stop, a9564572e); where the
	// dump records no finish reason, one that was completed stopped.
	StopProperly bool
	// Soft punishes length near a limit; nil = none. The length is the trained tokens of
	// all rows of the rollout, or, with ResponseLength, the tokens of the longest row
	// from its first trained token to its last, tool output and all, as trainers count
	// that see one response for each rollout (verl, TRL).
	Soft           *Overlong
	ResponseLength bool
	// Affine is (reward + Bias)·Scale after that; the zero value changes nothing.
	Affine Affine
	// Clip bounds the rewards after that; nil = none.
	Clip *reward.Range

	// MaskTruncated leaves the tokens of rollouts that a limit cut off out of the loss
	// (overlong filtering). Whether their reward stays in the mean of its group is the
	// estimator's choice (reward.Estimator.Masked).
	MaskTruncated bool
	// MaxAge leaves out rollouts of which a turn was sampled by a policy more than so
	// many versions before the newest of the batch; nil = any age. Rollouts that do not
	// record their version stay and are counted.
	MaxAge *int32

	// Spending takes from the rewards of a group what its rollouts spent, after all
	// rules above; masked rollouts and those left out are no part of it. nil = none.
	Spending *Spending

	// MinValid, MinSolved and MinUnsolved leave out groups with fewer valid, solved or
	// unsolved rollouts: 1 solved leaves out groups that nobody solves, 1 unsolved those
	// that all solve. A rollout solved its task by its verdict where that is recorded, else
	// where its outcome is 1 or more. Masked rollouts are not valid.
	MinValid, MinSolved, MinUnsolved int
	// Filter leaves out groups whose rewards tell nothing; nil = none.
	Filter *filter.Rule
	// FilterRaw has Filter look at rewards before they are shaped (NeMo RL 7ea279abf,
	// unshaped_total_reward).
	FilterRaw bool

	// DropZero leaves out rollouts whose advantage is 0, or less than 1e-12 (prime-rl 559b44772,
	// filter_zero_advantages): they stay in the statistics of their group. Those with
	// messages that an override is for stay.
	DropZero bool

	// Keep leaves out rollouts by their reward, as rejection sampling does; it looks at
	// what the rules above left.
	Keep Keep

	// OffPolicy bounds the difference between the policy that sampled and the one that
	// trains; nil = not here. It needs the log probabilities of both, of the latter
	// those that turns record (Turn.TrainLogprobs) or the pipeline is given; rows
	// without are left to the trainer, and counted.
	OffPolicy *OffPolicy
}

// Affine moves and scales rewards.
type Affine struct {
	Bias  float64
	Scale float64 // 0 = 1
}

// Validate reports every fault of r at once.
func (r Rules) Validate() error {
	f := faults.List{Of: "Shaping."}
	if c := r.TruncatedCoef; c != nil && !(*c >= 0 && *c <= 1) {
		f.Add("TruncatedCoef", "found %g, expected a number from 0 to 1", *c)
	}
	if r.Soft != nil {
		f.Join(r.Soft.Validate())
	}
	for _, x := range []float64{r.Affine.Bias, r.Affine.Scale} {
		if !(math.Abs(x) <= math.MaxFloat32) {
			f.Add("Affine", "found %g, expected a finite number", x)
		}
	}
	if c := r.Clip; c != nil && !(c.Low <= c.High) {
		f.Add("Clip", "[%g, %g] is no interval", c.Low, c.High)
	}
	if r.Spending != nil {
		f.Join(r.Spending.validate())
	}
	if a := r.MaxAge; a != nil && *a < 0 {
		f.Add("MaxAge", "found %d versions, expected 0 or more", *a)
	}
	f.Count("MinValid", r.MinValid)
	f.Count("MinSolved", r.MinSolved)
	f.Count("MinUnsolved", r.MinUnsolved)
	for _, x := range []*float64{r.Keep.Above, r.Keep.AtLeast} {
		if x != nil && !(math.Abs(*x) <= math.MaxFloat64) {
			f.Add("Keep", "found a bound of %g, expected a finite number", *x)
		}
	}
	f.Count("Keep.Best", r.Keep.Best)
	if r.Filter != nil {
		f.Join(r.Filter.Validate())
	}
	if r.FilterRaw && r.Filter == nil {
		f.Add("FilterRaw", "there is no filter that would look at rewards")
	}
	if r.OffPolicy != nil {
		f.Join(r.OffPolicy.validate())
	}
	return f.Err()
}
