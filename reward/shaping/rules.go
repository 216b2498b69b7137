package shaping

import (
	"math"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
)

// Rules holds the changes to a batch between its scores and its advantages. The zero value changes
// nothing. Rewards are changed in the order of the fields.
type Rules struct {
	// TruncatedCoef multiplies the reward of a truncated rollout; nil = 1
	// (NeMo RL's stop_properly penalty, 7ea279abf).
	TruncatedCoef *float64
	// StopProperly gives a rollout whose last turn did not finish with "stop" the reward 0 and no
	// trained token (SkyRL's zero_reward_on_non_stop, a9564572e); if the dump records no finish
	// reason, a completed rollout counts as stopped.
	StopProperly bool
	// Soft punishes length near a limit; nil = none. The length is the number of trained tokens in all
	// rows of the rollout; with ResponseLength, the number of tokens of the longest row from its first
	// trained token to its last, including tool output, as in trainers that have one response per
	// rollout (verl, TRL).
	Soft           *Overlong
	ResponseLength bool
	// Affine then replaces rewards by (reward + Bias)·Scale; the zero value changes nothing.
	Affine Affine
	// Clip then bounds the rewards; nil = none.
	Clip *reward.Range

	// MaskTruncated removes the tokens of rollouts cut off by a limit from the loss (overlong
	// filtering). reward.Estimator.Masked decides whether their reward stays in the mean of its group.
	MaskTruncated bool
	// MaxAge leaves out rollouts with a turn that was sampled by a policy more than MaxAge versions
	// older than the newest of the batch; nil = any age. Rollouts without a recorded version stay and
	// are counted.
	MaxAge *int32

	// Spending reduces the rewards of a group by the cost of its rollouts, after all rules above;
	// masked and left out rollouts are not part of it. nil = none.
	Spending *Spending

	// MinValid, MinSolved and MinUnsolved leave out groups with fewer valid, solved or unsolved
	// rollouts: 1 solved leaves out groups that no rollout solves, 1 unsolved groups that all rollouts
	// solve. A rollout is solved by its verdict if one is recorded, else by an outcome of 1 or more.
	// Masked rollouts are not valid.
	MinValid, MinSolved, MinUnsolved int
	// Filter leaves out groups whose rewards carry no signal; nil = none.
	Filter *filter.Rule
	// FilterRaw applies Filter to the rewards before shaping (NeMo RL 7ea279abf,
	// unshaped_total_reward).
	FilterRaw bool

	// DropZero leaves out rollouts whose advantage is less than 1e-12 in magnitude (prime-rl
	// 559b44772, filter_zero_advantages); they stay in the statistics of their group. Rollouts with
	// messages to which an override applies stay.
	DropZero bool

	// Keep leaves out rollouts by their reward, as in rejection sampling, among those that the rules
	// above kept.
	Keep Keep

	// OffPolicy bounds the difference between the behaviour policy and the training policy; nil = off.
	// It needs the log probabilities of both; those of the training policy come from the turns
	// (Turn.TrainLogprobs) or are given to the pipeline. Rows without them are left to the trainer,
	// and counted.
	OffPolicy *OffPolicy
}

// Affine shifts and scales rewards.
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
