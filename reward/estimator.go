package reward

import (
	"cmp"
	"math"

	"github.com/turnpack/turnpack/internal/faults"
)

// Defaults that a zero Estimator stands for.
const (
	defaultEpsilon = 1e-6
	// defaultTolerance is the spread up to which a group counts as constant. It
	// lies above what float32 arithmetic leaves on equal rewards near 1 and at the
	// default epsilon, below which a divisor no longer scales anything.
	defaultTolerance = 1e-6
)

// Estimator is a record of independent choices that turn rewards into
// advantages:
//
//	advantage = clip(factor × (reward − centre) / (scale ⊕ ε))
//
// The zero value is GRPO as this module does it by default; GRPO names it, and
// Presets has those of the trainers, by system and revision.
type Estimator struct {
	Name string // preset name, "" for a custom record

	// Grouping says which rewards are compared: of the same key; "position": of slices
	// of Size rows in input order, as some trainers do, so that a dropped row shifts
	// all that follow; "whole_batch".
	Grouping Choice
	Size     int // rows per slice, by position only
	// Remainder is for rows that fill no slice: refuse the batch; "one_group": unless
	// every group has its slice, the whole batch becomes one group; "bare": the rows
	// beyond the last slice have mean 0 and deviation 0.
	Remainder Choice

	// Unit is one observation of the statistics: a rollout, however many rows it has;
	// a "row" of it; an agent "step", as StepAdvantages compares them.
	Unit Choice
	// Population says what excluded rollouts do: leave the statistics and be dropped;
	// "zero": leave them and get advantage 0; "all": count with the reward they carry.
	Population Choice
	// Masked is for rollouts of which the loss mask leaves no row to train, such as
	// one cut off by a limit under overlong filtering: count with their reward and as
	// many rows as they would have; "leave" the statistics.
	Masked Choice

	// Center is subtracted: the mean; "none"; "leave_one_out", the mean of the others;
	// "length_weighted", Σ length·r / Σ length; "ema", a running mean of the key's
	// earlier rewards in input order; the rollout's own "baseline"; "second_best", the
	// second best reward, for the best row only, while the others get 0.
	Center     Choice
	CenterOver Choice  // the group; "batch"
	Decay      float64 // of "ema": baseline ← Decay·baseline + (1 − Decay)·reward, in (0, 1)

	// Divisor: σ₁, the deviation with n − 1; "std0", with n; "none"; "mean", the mean
	// reward, where one of 0 or less gives advantage 0 if no epsilon is added;
	// "others_std", σ₁ of the other rewards.
	Divisor   Choice
	ScaleOver Choice // the group; "batch"
	// ScaleAboutCenter takes the deviation about the centres actually subtracted
	// (leave-one-out means, 0, or those of the other level) instead of about the
	// mean of its own set.
	ScaleAboutCenter bool

	Epsilon float64 // 0 = 1e-6
	// Place of the epsilon: x / (s + ε); "none", x / s; "under_root", x / √(s² + ε);
	// "floor", x / max(s, ε); "if_spread", x / (s + ε) where s > 0, else x unscaled.
	Place Choice

	// Singleton is what a group of one observation gives: 0; the "reward" itself;
	// "unit", reward / (1 + ε); "drop", its row leaves the batch; "error", the batch is
	// refused; "as_is", the formulas with n = 1.
	Singleton Choice
	// Constant is what a group gives whose rewards are all alike: exactly 0, found by
	// spread before any scaling; "drop", its rows leave the batch, singletons too;
	// "drop_plural", only groups of more than one; "as_is", the formulas, rounding
	// noise included.
	Constant Choice
	// KeepConstant is how many of the groups to drop stay, the first ones, when every
	// group is constant.
	KeepConstant int
	Tolerance    float64 // up to which a group is constant, 0 = 1e-6
	ToleranceOf  Choice  // what it bounds: max − min; "variance", σ₀²

	// Normalize subtracts the batch mean of the advantages and divides by their
	// batch σ₁ + ε afterwards.
	Normalize bool
	Factor    Choice // of every advantage: 1; "nonzero", rows / rows with a reward other than 0

	// Arithmetic of the sums: without rounding error; "pairwise", numpy's, with
	// deviations from a rounded mean; "mean_of_squares", variance as mean of squares −
	// square of mean, which loses digits, and NaN gives 0. The latter two look at a
	// group's rewards together and depend on their order, as the systems they reproduce.
	Arithmetic Choice

	// Override replaces the credit of flagged messages after normalisation and
	// before Clip; see CreditMessages.
	Override Override
	Clip     *Range // nil = none
}

// Range is a closed interval; an infinite end is open.
type Range struct{ Low, High float64 }

func (r *Range) clip(x float64) float64 {
	if r == nil {
		return x
	}
	return math.Min(math.Max(x, r.Low), r.High)
}

// Override gives flagged sampled messages an advantage of their own. nil leaves
// them alone. An invalid tool call wins over malformed thinking.
type Override struct {
	InvalidToolCall   *float64
	MalformedThinking *float64
}

// GRPO is the default estimator: groups by key, one reward per rollout,
// (r − mean) / (σ₁ + 1e-6), constant groups and single rollouts 0.
func GRPO() Estimator { return Estimator{Name: "grpo"} }

// Advantages is the function Advantages without its report.
func (e Estimator) Advantages(groups []GroupRewards) ([][]Advantage, error) {
	out, _, err := Advantages(groups, e)
	return out, err
}

// CountsRows says whether e looks at the rows of a rollout or at their length, so
// that RolloutReward must hold them.
func (e Estimator) CountsRows() bool {
	return e.Unit == unitRow || e.Center == centerLengthWeighted || e.Masked == maskedLeave
}

// Validate reports every fault of e at once.
func (e Estimator) Validate() error {
	var f faults.List
	faults.Word(&f, "Grouping", e.Grouping, groupByPosition, groupWholeBatch)
	faults.Word(&f, "Remainder", e.Remainder, remainderOneGroup, remainderBare)
	faults.Word(&f, "Unit", e.Unit, unitRow, unitStep)
	faults.Word(&f, "Population", e.Population, populationZero, populationAll)
	faults.Word(&f, "Masked", e.Masked, maskedLeave)
	faults.Word(&f, "Center", e.Center, centerNone, centerLeaveOneOut, centerLengthWeighted, centerEMA, centerBaseline, centerSecondBest)
	faults.Word(&f, "CenterOver", e.CenterOver, levelBatch)
	faults.Word(&f, "Divisor", e.Divisor, divideStd0, divideNone, divideMean, divideOthersStd)
	faults.Word(&f, "ScaleOver", e.ScaleOver, levelBatch)
	faults.Word(&f, "Place", e.Place, epsilonNone, epsilonUnderRoot, epsilonFloor, epsilonIfSpread)
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
	if e.CenterOver == levelBatch && (e.Center == centerEMA || e.Center == centerSecondBest || e.Center == centerBaseline) {
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
	switch { // it is asked for each rollout, where cmp.Or would tell
	case e.Place == epsilonNone:
		return 0
	case e.Epsilon == 0:
		return defaultEpsilon
	}
	return e.Epsilon
}

func (e *Estimator) tolerance() float64 { return cmp.Or(e.Tolerance, defaultTolerance) }

// Excludes says why r has no place in the statistics, "" if it has one.
func (e Estimator) Excludes(r RolloutReward) string {
	if r.Excluded == "" && e.Masked == maskedLeave && r.MaskedRows > 0 && r.MaskedRows >= r.Rows {
		return excludedMasked
	}
	return r.Excluded
}

func (e *Estimator) takesPart(r RolloutReward) bool {
	why := e.Excludes(r)
	return why == "" || why == r.Excluded && e.Population == populationAll
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
