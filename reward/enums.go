package reward

import "github.com/turnpack/turnpack/internal/enum"

// Grouping says which rewards are compared with each other.
type Grouping uint8

// The groupings.
const (
	GroupByKey      Grouping = iota // rollouts that carry the same group key
	GroupByPosition                 // slices of Size rows in input order, as some trainers do; a dropped row shifts all that follow
	GroupWholeBatch                 // everything is one group
)

var groupingNames = []string{"key", "position", "whole_batch"}

// String returns the name used in reports.
func (g Grouping) String() string { return enum.Name(groupingNames, g, "grouping") }

// Remainder says what GroupByPosition does with rows that fill no slice.
type Remainder uint8

// The remainder rules.
const (
	RemainderError    Remainder = iota // refuse the batch
	RemainderOneGroup                  // unless every group has its slice, the whole batch becomes one group
	RemainderBare                      // the rows beyond the last slice have mean 0 and deviation 0
)

var remainderNames = []string{"error", "one_group", "bare"}

// String returns the name used in reports.
func (r Remainder) String() string { return enum.Name(remainderNames, r, "remainder") }

// Unit says what one observation of the statistics is.
type Unit uint8

// The units.
const (
	UnitRollout Unit = iota // each rollout counts once, however many rows it has
	UnitRow                 // each rollout counts once per training row
	UnitStep                // each agent step counts, as StepAdvantages compares them
)

var unitNames = []string{"rollout", "row", "step"}

// String returns the name used in reports.
func (u Unit) String() string { return enum.Name(unitNames, u, "unit") }

// Population says whether excluded rollouts take part.
type Population uint8

// The populations.
const (
	PopulationValid Population = iota // excluded rollouts leave the statistics and are dropped
	PopulationZero                    // excluded rollouts leave the statistics and get advantage 0
	PopulationAll                     // excluded rollouts count with the reward they carry
)

var populationNames = []string{"valid", "valid, excluded get 0", "all"}

// String returns the name used in reports.
func (p Population) String() string { return enum.Name(populationNames, p, "population") }

// Masked says whether a rollout counts of which the loss mask leaves no row to
// train, such as one cut off by a limit under overlong filtering.
type Masked uint8

// The rules.
const (
	MaskedStay  Masked = iota // it counts with its reward and as many rows as it would have
	MaskedLeave               // it leaves the statistics
)

var maskedNames = []string{"stay", "leave"}

// String returns the name used in reports.
func (m Masked) String() string { return enum.Name(maskedNames, m, "masked") }

// Level says over which set a centre or a scale is taken.
type Level uint8

// The levels.
const (
	LevelGroup Level = iota
	LevelBatch
)

var levelNames = []string{"group", "batch"}

// String returns the name used in reports.
func (l Level) String() string { return enum.Name(levelNames, l, "level") }

// Center says what is subtracted from a reward.
type Center uint8

// The centres.
const (
	CenterMean           Center = iota // the mean
	CenterNone                         // nothing
	CenterLeaveOneOut                  // the mean of the others
	CenterLengthWeighted               // Σ length·r / Σ length
	CenterEMA                          // a running mean of the key's earlier rewards, in input order
	CenterBaseline                     // the rollout's own given baseline
	CenterSecondBest                   // the second best reward, for the best row only; the others get 0
)

var centerNames = []string{"mean", "none", "leave_one_out", "length_weighted", "ema", "baseline", "second_best"}

// String returns the name used in reports.
func (c Center) String() string { return enum.Name(centerNames, c, "center") }

// Divisor says what a centred reward is divided by.
type Divisor uint8

// The divisors.
const (
	DivideStd       Divisor = iota // σ₁, the deviation with n − 1
	DivideStd0                     // σ₀, the deviation with n
	DivideNone                     // 1
	DivideMean                     // the mean reward; a mean of 0 or less gives advantage 0 where no epsilon is added
	DivideOthersStd                // σ₁ of the other rewards
)

var divisorNames = []string{"σ₁", "σ₀", "none", "mean", "σ₁ of the others"}

// String returns the name used in reports.
func (d Divisor) String() string { return enum.Name(divisorNames, d, "divisor") }

// EpsilonPlace says where the epsilon goes.
type EpsilonPlace uint8

// The places.
const (
	EpsilonAdded     EpsilonPlace = iota // x / (s + ε)
	EpsilonNone                          // x / s
	EpsilonUnderRoot                     // x / √(s² + ε)
	EpsilonFloor                         // x / max(s, ε)
	EpsilonIfSpread                      // x / (s + ε) where s > 0, else x unscaled
)

var epsilonNames = []string{"added", "none", "under_root", "floor", "added where the divisor > 0, else unscaled"}

// String returns the name used in reports.
func (p EpsilonPlace) String() string { return enum.Name(epsilonNames, p, "epsilon place") }

// Singleton says what a group of one observation gives.
type Singleton uint8

// The singleton rules.
const (
	SingletonZero   Singleton = iota // advantage 0
	SingletonReward                  // the reward itself
	SingletonUnit                    // centre 0 and divisor 1: reward / (1 + ε)
	SingletonDrop                    // the row leaves the batch
	SingletonError                   // the batch is refused
	SingletonAsIs                    // no special case: the formulas with n = 1
)

var singletonNames = []string{"zero", "reward", "reward / (1 + ε)", "drop", "error", "as is"}

// String returns the name used in reports.
func (s Singleton) String() string { return enum.Name(singletonNames, s, "singleton") }

// Constant says what a group gives whose rewards are all alike.
type Constant uint8

// The constant-group rules.
const (
	ConstantZero       Constant = iota // exactly 0, found by spread ≤ Tolerance before any scaling
	ConstantDrop                       // its rows leave the batch, except the KeepConstant first such groups while none other is left; a single rollout counts as constant
	ConstantDropPlural                 // as ConstantDrop, but a single rollout does not count
	ConstantAsIs                       // no special case: the formulas, rounding noise included
)

var constantNames = []string{"zero", "drop", "drop, singletons kept", "as is"}

// String returns the name used in reports.
func (c Constant) String() string { return enum.Name(constantNames, c, "constant") }

// Arithmetic says how sums are formed.
type Arithmetic uint8

// The arithmetics. All but the first look at the rewards of a group together
// and depend on their order, as the systems they reproduce do.
const (
	ArithmeticExact         Arithmetic = iota // sums without rounding error
	ArithmeticPairwise                        // numpy's pairwise sums, deviations from a rounded mean
	ArithmeticMeanOfSquares                   // variance as mean of squares − square of mean, which loses digits; NaN gives 0
)

var arithmeticNames = []string{"exact", "pairwise", "mean of squares"}

// String returns the name used in reports.
func (a Arithmetic) String() string { return enum.Name(arithmeticNames, a, "arithmetic") }

// ToleranceOf says what Tolerance bounds.
type ToleranceOf uint8

// The bounded quantities.
const (
	ToleranceSpread   ToleranceOf = iota // max − min
	ToleranceVariance                    // σ₀²
)

var toleranceNames = []string{"spread", "variance"}

// String returns the name used in reports.
func (t ToleranceOf) String() string { return enum.Name(toleranceNames, t, "tolerance of") }

// Factor multiplies every advantage of a batch.
type Factor uint8

// The factors.
const (
	FactorOne     Factor = iota
	FactorNonzero        // rows of the batch / rows with a reward other than 0
)

var factorNames = []string{"1", "rows / nonzero rows"}

// String returns the name used in reports.
func (f Factor) String() string { return enum.Name(factorNames, f, "factor") }
