package reward

// Choice is the value of one Estimator field; each field documents the values it accepts. The empty
// value selects the option that the field documents first.
type Choice string

// Values of Grouping, Remainder, Unit, Population and Masked.
const (
	groupByKey      Choice = ""
	groupByPosition Choice = "position"
	groupWholeBatch Choice = "whole_batch"

	remainderError    Choice = ""
	remainderOneGroup Choice = "one_group"
	remainderBare     Choice = "bare"

	unitRollout Choice = ""
	unitRow     Choice = "row"
	unitStep    Choice = "step"

	populationValid Choice = ""
	populationZero  Choice = "zero"

	maskedStay  Choice = ""
	maskedLeave Choice = "leave"
)

// Values of Center, CenterOver, Divisor, ScaleOver and Place.
const (
	centerMean           Choice = ""
	centerNone           Choice = "none"
	centerLeaveOneOut    Choice = "leave_one_out"
	centerLengthWeighted Choice = "length_weighted"
	centerEMA            Choice = "ema"
	centerBaseline       Choice = "baseline"
	centerSecondBest     Choice = "second_best"

	levelGroup Choice = ""
	levelBatch Choice = "batch"

	divideStd       Choice = ""
	divideStd0      Choice = "std0"
	divideNone      Choice = "none"
	divideMean      Choice = "mean"
	divideOthersStd Choice = "others_std"

	epsilonAdded    Choice = ""
	epsilonNone     Choice = "none"
	epsilonIfSpread Choice = "if_spread"
)

// Values of Singleton, Constant, ToleranceOf, Factor and Arithmetic.
const (
	singletonZero   Choice = ""
	singletonReward Choice = "reward"
	singletonUnit   Choice = "unit"
	singletonDrop   Choice = "drop"
	singletonError  Choice = "error"
	singletonAsIs   Choice = "as_is"

	constantZero       Choice = ""
	constantDrop       Choice = "drop"
	constantDropPlural Choice = "drop_plural"
	constantAsIs       Choice = "as_is"

	toleranceSpread   Choice = ""
	toleranceVariance Choice = "variance"

	factorOne     Choice = ""
	factorNonzero Choice = "nonzero"

	arithmeticExact         Choice = ""
	arithmeticPairwise      Choice = "pairwise"
	arithmeticMeanOfSquares Choice = "mean_of_squares"
)
