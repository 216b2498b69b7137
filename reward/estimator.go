package reward

import "math"

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

	Grouping  Grouping
	Size      int       // rows per slice, GroupByPosition only
	Remainder Remainder // GroupByPosition only

	Unit       Unit
	Population Population
	Masked     Masked

	Center     Center
	CenterOver Level
	Decay      float64 // CenterEMA: baseline ← Decay·baseline + (1 − Decay)·reward, in (0, 1)

	Divisor   Divisor
	ScaleOver Level
	// ScaleAboutCenter takes the deviation about the centres actually subtracted
	// (leave-one-out means, 0, or those of the other level) instead of about the
	// mean of its own set.
	ScaleAboutCenter bool

	Epsilon float64 // 0 = 1e-6; EpsilonNone has none
	Place   EpsilonPlace

	Singleton Singleton
	Constant  Constant
	// KeepConstant groups survive ConstantDrop when every group is constant.
	KeepConstant int
	Tolerance    float64 // up to which a group is constant, 0 = 1e-6
	ToleranceOf  ToleranceOf

	// Normalize subtracts the batch mean of the advantages and divides by their
	// batch σ₁ + ε afterwards.
	Normalize bool
	Factor    Factor

	Arithmetic Arithmetic

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
	return e.Unit == UnitRow || e.Center == CenterLengthWeighted || e.Masked == MaskedLeave
}

// Validate reports every fault of e at once.
func (e Estimator) Validate() error {
	var f faults
	f.enum("Grouping", int(e.Grouping), len(groupingNames))
	f.enum("Remainder", int(e.Remainder), len(remainderNames))
	f.enum("Unit", int(e.Unit), len(unitNames))
	f.enum("Population", int(e.Population), len(populationNames))
	f.enum("Masked", int(e.Masked), len(maskedNames))
	f.enum("Center", int(e.Center), len(centerNames))
	f.enum("CenterOver", int(e.CenterOver), len(levelNames))
	f.enum("Divisor", int(e.Divisor), len(divisorNames))
	f.enum("ScaleOver", int(e.ScaleOver), len(levelNames))
	f.enum("Place", int(e.Place), len(epsilonNames))
	f.enum("Singleton", int(e.Singleton), len(singletonNames))
	f.enum("Constant", int(e.Constant), len(constantNames))
	f.enum("ToleranceOf", int(e.ToleranceOf), len(toleranceNames))
	f.enum("Factor", int(e.Factor), len(factorNames))
	f.enum("Arithmetic", int(e.Arithmetic), len(arithmeticNames))
	if e.Arithmetic != ArithmeticExact && (e.CenterOver == LevelBatch || e.ScaleOver == LevelBatch || e.ScaleAboutCenter ||
		e.Center != CenterMean && e.Center != CenterLeaveOneOut && e.Center != CenterNone || e.Divisor == DivideMean ||
		e.Arithmetic == ArithmeticPairwise && (e.Center == CenterLeaveOneOut || e.Divisor == DivideOthersStd)) {
		f.add("Arithmetic", "the arithmetic %q is not defined for this centre and scale", e.Arithmetic)
	}
	f.nonNegative("Epsilon", e.Epsilon)
	f.nonNegative("Tolerance", e.Tolerance)
	if e.Grouping == GroupByPosition && e.Size < 1 {
		f.add("Size", "groups by position need Size >= 1 rows per slice, found %d", e.Size)
	}
	if e.Grouping != GroupByPosition && e.Size != 0 {
		f.add("Size", "Size is %d, which has a meaning with GroupByPosition only", e.Size)
	}
	if e.Place == EpsilonNone && e.Epsilon != 0 {
		f.add("Epsilon", "Epsilon is %g, but Place says that there is none", e.Epsilon)
	}
	if e.Center == CenterEMA && !(e.Decay > 0 && e.Decay < 1) {
		f.add("Decay", "CenterEMA needs a Decay between 0 and 1, found %g", e.Decay)
	}
	if e.Center != CenterEMA && e.Decay != 0 {
		f.add("Decay", "Decay is %g, which has a meaning with CenterEMA only", e.Decay)
	}
	if e.Center == CenterEMA && (e.Divisor != DivideNone || e.Normalize) {
		f.add("Divisor", "CenterEMA looks at one reward after the other and has no set to scale by: use DivideNone")
	}
	if e.CenterOver == LevelBatch && (e.Center == CenterEMA || e.Center == CenterSecondBest || e.Center == CenterBaseline) {
		f.add("CenterOver", "the centre %s is defined per group or row only", e.Center)
	}
	if e.Divisor == DivideOthersStd && e.ScaleOver == LevelBatch {
		f.add("ScaleOver", "the deviation of the others is defined per group only")
	}
	if e.ScaleAboutCenter && e.Center != CenterLeaveOneOut && e.Center != CenterMean && e.Center != CenterNone {
		f.add("ScaleAboutCenter", "a deviation about the centre %s is not defined here", e.Center)
	}
	if e.Arithmetic != ArithmeticExact && e.Grouping == GroupByPosition && e.Remainder == RemainderBare {
		f.add("Remainder", "rows without a group have no %s", e.Arithmetic)
	}
	if e.KeepConstant < 0 || e.KeepConstant > 0 && !e.dropsConstant() {
		f.add("KeepConstant", "%d groups to keep, which has a meaning >= 0 where constant groups are dropped only", e.KeepConstant)
	}
	if e.Clip != nil && !(e.Clip.Low <= e.Clip.High) {
		f.add("Clip", "[%g, %g] is no interval", e.Clip.Low, e.Clip.High)
	}
	for _, o := range []struct {
		field string
		value *float64
	}{{"Override.InvalidToolCall", e.Override.InvalidToolCall}, {"Override.MalformedThinking", e.Override.MalformedThinking}} {
		if o.value != nil {
			f.finite(o.field, *o.value)
		}
	}
	return f.err()
}

func (e *Estimator) dropsConstant() bool {
	return e.Constant == ConstantDrop || e.Constant == ConstantDropPlural
}

func (e *Estimator) epsilon() float64 {
	switch {
	case e.Place == EpsilonNone:
		return 0
	case e.Epsilon == 0:
		return defaultEpsilon
	}
	return e.Epsilon
}

func (e *Estimator) tolerance() float64 {
	if e.Tolerance == 0 {
		return defaultTolerance
	}
	return e.Tolerance
}
