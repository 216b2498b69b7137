package reward

import (
	"cmp"
	"math"

	"github.com/turnpack/turnpack/internal/faults"
)

// Defaults of a zero Estimator.
const (
	defaultEpsilon = 1e-6
	// defaultTolerance is the spread up to which a group counts as constant. It lies above the float32
	// rounding error on equal rewards near 1, and equals the default epsilon, below which a divisor no
	// longer scales anything.
	defaultTolerance = 1e-6
)

// Estimator is a record of independent choices that turn rewards into
// advantages:
//
//	advantage = clip(factor × (reward − centre) / (scale ⊕ ε))
//
// The zero value is this module's default form of GRPO, which the function GRPO returns with its name;
// Presets lists those of the trainers, by system and revision.
type Estimator struct {
	Name string // preset name, "" for a custom record

	// Grouping selects which rewards are compared: "", those of the same key; "position", slices of
	// Size rows in input order, as in some trainers, so that a dropped row shifts all that follow;
	// "whole_batch", all.
	Grouping Choice
	Size     int // rows per slice; for "position" only
	// Remainder selects the treatment of rows that fill no slice: "", refuse the batch; "one_group",
	// make the whole batch one group unless every group has its slice; "bare", give the rows beyond
	// the last slice mean 0 and deviation 0.
	Remainder Choice

	// Unit selects one observation of the statistics: "", a rollout, however many rows it has; "row",
	// each of its rows; "step", an agent step, as StepAdvantages compares them.
	Unit Choice
	// Population selects the treatment of excluded rollouts: "", they leave the statistics and are
	// dropped; "zero", they leave the statistics and get advantage 0.
	Population Choice
	// Masked selects the treatment of rollouts whose rows are all removed by the loss mask, such as
	// rollouts cut off by a limit under overlong filtering: "", they count with their reward and with
	// as many rows as they would have; "leave", they leave the statistics.
	Masked Choice

	// Center selects what is subtracted: "", the mean; "none", nothing; "leave_one_out", the mean of
	// the other rewards; "length_weighted", Σ length·r / Σ length; "ema", a running mean of the key's
	// earlier rewards in input order; "second_best", the second best reward for the best row, while
	// the others get advantage 0.
	Center     Choice
	CenterOver Choice  // "", over the group; "batch"
	Decay      float64 // for "ema": baseline ← Decay·baseline + (1 − Decay)·reward, in (0, 1)

	// Divisor selects the scale: "", σ₁, the deviation with n − 1; "std0", the deviation with n;
	// "none", no division; "mean", the mean reward, where a mean of 0 or less gives advantage 0 if no
	// epsilon is added; "others_std", σ₁ of the other rewards.
	Divisor   Choice
	ScaleOver Choice // "", over the group; "batch"
	// ScaleAboutCenter computes the deviation about the centres actually subtracted (leave-one-out
	// means, 0, or those of the other level) instead of about the mean of its own set.
	ScaleAboutCenter bool

	Epsilon float64 // 0 = 1e-6
	// Place selects where the epsilon is added: "", x / (s + ε); "none", x / s; "if_spread", x / (s +
	// ε) where s > 0, else x unscaled.
	Place Choice

	// Singleton selects the advantage of a group of one observation: "", 0; "reward", the reward
	// itself; "unit", reward / (1 + ε); "drop", its row is removed from the batch; "error", the batch
	// is refused; "as_is", the formulas with n = 1.
	Singleton Choice
	// Constant selects the treatment of a group whose rewards are all alike: "", exactly 0, detected
	// by spread before any scaling; "drop", its rows are removed from the batch, including those of
	// singletons; "drop_plural", the same for groups of more than one only; "as_is", the formulas,
	// rounding noise included.
	Constant Choice
	// KeepConstant is the number of groups, the first ones, that stay when every group is constant and
	// would be dropped.
	KeepConstant int
	Tolerance    float64 // bound up to which a group is constant, 0 = 1e-6
	ToleranceOf  Choice  // the quantity that Tolerance bounds: "", max − min; "variance", σ₀²

	// Normalize then subtracts the batch mean of the advantages and divides by their batch σ₁ + ε.
	Normalize bool
	Factor    Choice // factor of every advantage: "", 1; "nonzero", rows / rows with a reward other than 0

	// Arithmetic selects how sums are computed: "", without rounding error; "pairwise", as numpy does,
	// with deviations from a rounded mean; "mean_of_squares", with the variance as mean of squares −
	// square of mean, which loses digits, and where NaN gives 0. The latter two process a group's
	// rewards together and depend on their order, as do the systems they reproduce.
	Arithmetic Choice

	// Override replaces the credit of flagged messages after normalisation and
	// before Clip; see CreditMessages.
	Override Override
	Clip     *Range // nil = none
}

// Range is a closed interval; an infinite end means no bound.
type Range struct{ Low, High float64 }

func (r *Range) clip(x float64) float64 {
	if r == nil {
		return x
	}
	return math.Min(math.Max(x, r.Low), r.High)
}

// Override sets the advantage of flagged sampled messages. A nil field leaves the messages with that
// flag unchanged. InvalidToolCall takes precedence over MalformedThinking.
type Override struct {
	InvalidToolCall   *float64
	MalformedThinking *float64
}

// GRPO is the default estimator: groups by key, one reward per rollout, (r − mean) / (σ₁ + 1e-6), and
// 0 for constant groups and single rollouts.
func GRPO() Estimator { return Estimator{Name: "grpo"} }

// Advantages calls the function Advantages and discards its report.
func (e Estimator) Advantages(groups []GroupRewards) ([][]Advantage, error) {
	out, _, err := Advantages(groups, e)
	return out, err
}

// CountsRows reports whether e uses the rows or the length of a rollout, so that RolloutReward must
// hold them.
func (e Estimator) CountsRows() bool {
	return e.Unit == unitRow || e.Center == centerLengthWeighted || e.Masked == maskedLeave
}

// Validate reports every fault of e at once.
func (e Estimator) Validate() error {
	var f faults.List
	faults.Word(&f, "Grouping", e.Grouping, groupByPosition, groupWholeBatch)
	faults.Word(&f, "Remainder", e.Remainder, remainderOneGroup, remainderBare)
	faults.Word(&f, "Unit", e.Unit, unitRow, unitStep)
	faults.Word(&f, "Population", e.Population, populationZero)
	faults.Word(&f, "Masked", e.Masked, maskedLeave)
	faults.Word(&f, "Center", e.Center, centerNone, centerLeaveOneOut, centerLengthWeighted, centerEMA, centerSecondBest)
	faults.Word(&f, "CenterOver", e.CenterOver, levelBatch)
	faults.Word(&f, "Divisor", e.Divisor, divideStd0, divideNone, divideMean, divideOthersStd)
	faults.Word(&f, "ScaleOver", e.ScaleOver, levelBatch)
	faults.Word(&f, "Place", e.Place, epsilonNone, epsilonIfSpread)
	faults.Word(&f, "Singleton", e.Singleton, singletonReward, singletonUnit, singletonDrop, singletonError, singletonAsIs)
	faults.Word(&f, "Constant", e.Constant, constantDrop, constantDropPlural, constantAsIs)
	faults.Word(&f, "ToleranceOf", e.ToleranceOf, toleranceVariance)
	faults.Word(&f, "Factor", e.Factor, factorNonzero)
	faults.Word(&f, "Arithmetic", e.Arithmetic, arithmeticPairwise, arithmeticMeanOfSquares)
	if e.Arithmetic != arithmeticExact && (e.CenterOver == levelBatch || e.ScaleOver == levelBatch || e.ScaleAboutCenter ||
		e.Center != centerMean && e.Center != centerLeaveOneOut && e.Center != centerNone || e.Divisor == divideMean ||
		e.Arithmetic == arithmeticPairwise && (e.Center == centerLeaveOneOut || e.Divisor == divideOthersStd)) {
		f.Add("Arithmetic", "the arithmetic %q is not defined for this centre and scale", e.Arithmetic)
	}
	f.Amount("Epsilon", e.Epsilon)
	f.Amount("Tolerance", e.Tolerance)
	if e.Grouping == groupByPosition && e.Size < 1 {
		f.Add("Size", "groups by position need Size >= 1 rows per slice, found %d", e.Size)
	}
	if e.Grouping != groupByPosition && e.Size != 0 {
		f.Add("Size", "Size is %d, which has a meaning by position only", e.Size)
	}
	if e.Place == epsilonNone && e.Epsilon != 0 {
		f.Add("Epsilon", "Epsilon is %g, but Place says that there is none", e.Epsilon)
	}
	if e.Center == centerEMA && !(e.Decay > 0 && e.Decay < 1) {
		f.Add("Decay", "the centre ema needs a Decay between 0 and 1, found %g", e.Decay)
	}
	if e.Center != centerEMA && e.Decay != 0 {
		f.Add("Decay", "Decay is %g, which has a meaning with the centre ema only", e.Decay)
	}
	if e.Center == centerEMA && (e.Divisor != divideNone || e.Normalize) {
		f.Add("Divisor", "the centre ema looks at one reward after the other and has no set to scale by: use the divisor none")
	}
	if e.CenterOver == levelBatch && (e.Center == centerEMA || e.Center == centerSecondBest) {
		f.Add("CenterOver", "the centre %s is defined per group or row only", e.Center)
	}
	if e.Divisor == divideOthersStd && e.ScaleOver == levelBatch {
		f.Add("ScaleOver", "the deviation of the others is defined per group only")
	}
	if e.ScaleAboutCenter && e.Center != centerLeaveOneOut && e.Center != centerMean && e.Center != centerNone {
		f.Add("ScaleAboutCenter", "a deviation about the centre %s is not defined here", e.Center)
	}
	if e.Arithmetic != arithmeticExact && e.Grouping == groupByPosition && e.Remainder == remainderBare {
		f.Add("Remainder", "rows without a group have no rewards to sum with the arithmetic %q", e.Arithmetic)
	}
	if e.KeepConstant < 0 || e.KeepConstant > 0 && !e.dropsConstant() {
		f.Add("KeepConstant", "%d groups to keep, which has a meaning >= 0 where constant groups are dropped only", e.KeepConstant)
	}
	if e.Clip != nil && !(e.Clip.Low <= e.Clip.High) {
		f.Add("Clip", "[%g, %g] is no interval", e.Clip.Low, e.Clip.High)
	}
	for _, o := range []struct {
		field string
		value *float64
	}{{"Override.InvalidToolCall", e.Override.InvalidToolCall}, {"Override.MalformedThinking", e.Override.MalformedThinking}} {
		if o.value != nil && !finite(*o.value) {
			f.Add(o.field, "%g is not finite", *o.value)
		}
	}
	return f.Err()
}

func (e *Estimator) dropsConstant() bool {
	return e.Constant == constantDrop || e.Constant == constantDropPlural
}

func (e *Estimator) epsilon() float64 {
	switch { // called for each rollout, where the cost of cmp.Or is measurable
	case e.Place == epsilonNone:
		return 0
	case e.Epsilon == 0:
		return defaultEpsilon
	}
	return e.Epsilon
}

func (e *Estimator) tolerance() float64 { return cmp.Or(e.Tolerance, defaultTolerance) }

// Excludes returns the reason why r is excluded from the statistics, "" if it is included.
func (e Estimator) Excludes(r RolloutReward) string {
	if r.Excluded == "" && e.Masked == maskedLeave && r.MaskedRows > 0 && r.MaskedRows >= r.Rows {
		return excludedMasked
	}
	return r.Excluded
}

func (e *Estimator) count(r RolloutReward) int {
	switch {
	case e.Unit != unitRow || r.Rows == 0:
		return 1
	case e.Masked == maskedLeave:
		return r.Rows - r.MaskedRows
	}
	return r.Rows
}

func (e *Estimator) usesBatch() bool {
	return e.CenterOver == levelBatch || e.ScaleOver == levelBatch || e.Factor != factorOne
}
