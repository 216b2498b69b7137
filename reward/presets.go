package reward

import "strings"

// Revisions of the systems that the presets reproduce.
const (
	slimeRevision    = "624b824a8"
	openclawRevision = "0d034dd5e"
	verlRevision     = "1dda039b9"
	skyrlRevision    = "a9564572e"
	nemoRevision     = "7ea279abf"
	primeRevision    = "559b44772"
	arealRevision    = "4aef98d8d"
	trlRevision      = "1.16.0"
)

// Presets lists the estimators of trainers, each named system_formula@revision, after GRPO, the
// default of this module. They reproduce the formulas including their shortcomings: most count rows
// rather than rollouts, keep the rounding noise of constant groups, or group by position. A preset
// that groups by position needs Size set to the number of rollouts per prompt.
func Presets() []Estimator {
	all := []Estimator{GRPO()}
	for _, system := range []struct {
		revision string
		presets  []Estimator
	}{
		{slimeRevision, slimePresets()},
		{openclawRevision, openclawPresets()},
		{verlRevision, verlPresets()},
		{skyrlRevision, skyrlPresets()},
		{nemoRevision, nemoPresets()},
		{trlRevision, trlPresets()},
		{primeRevision, primePresets()},
		{arealRevision, []Estimator{areal()}},
	} {
		for _, e := range system.presets {
			e.Name += "@" + system.revision
			all = append(all, e)
		}
	}
	return all
}

// Preset returns the estimator of that name, given with or without its revision.
func Preset(name string) (Estimator, bool) {
	for _, e := range Presets() {
		if sameName(e.Name, name) {
			return e, true
		}
	}
	return Estimator{}, false
}

// ByKey returns e with grouping by key in place of grouping by position, and ":key" appended to its
// name; other estimators are returned unchanged. Where every group is complete and contiguous, as the
// estimators by position expect, the advantages are the same; where a group is not, the other groups
// do not shift.
func ByKey(e Estimator) Estimator {
	if e.Grouping != groupByPosition {
		return e
	}
	e.Grouping, e.Size, e.Remainder = groupByKey, 0, remainderError
	e.Name += ":key"
	return e
}

func sameName(full, name string) bool {
	base, _, _ := strings.Cut(full, "@")
	return full == name || base == name
}

// ProposerKey is the group key of the rollouts that wrote the problems, for estimators that compare
// solvers within a problem and proposers across all problems of a batch (prime-rl's hierarchical GRPO,
// self-play).
const ProposerKey = "\x00proposer"

// parity returns e with the settings common to the presets: rows are counted, and constant groups keep
// their rounding noise. Excluded rollouts leave the statistics here too: the systems have no notion of
// exclusion and would need a made-up reward.
func parity(e Estimator) Estimator {
	e.Unit, e.Constant = unitRow, constantAsIs
	return e
}

func slimePresets() []Estimator {
	sliced := func(e Estimator) Estimator {
		e.Grouping, e.Remainder = groupByPosition, remainderOneGroup
		return parity(e)
	}
	return []Estimator{
		// A single sample per prompt is NaN in the source.
		sliced(Estimator{Name: "slime_grpo", Singleton: singletonDrop}),
		sliced(Estimator{Name: "slime_grpo_nostd", Divisor: divideNone}),
	}
}

func openclawPresets() []Estimator {
	return []Estimator{
		parity(Estimator{Name: "openclaw_grpo"}),
		parity(Estimator{Name: "openclaw_grpo_nostd", Divisor: divideNone}),
		{
			Name: "openclaw_grpo_drop_constant", Unit: unitRow,
			Constant: constantDrop, KeepConstant: 1, Tolerance: 1e-12,
		},
		{Name: "openclaw_grpo_dynamic_history", Constant: constantAsIs},
		{
			Name: "openclaw_step_wise", Unit: unitStep, Divisor: divideStd0, Singleton: singletonReward,
			Constant: constantDropPlural, KeepConstant: 1, Tolerance: 1e-12, ToleranceOf: toleranceVariance,
			Arithmetic: arithmeticMeanOfSquares,
		},
	}
}

func verlPresets() []Estimator {
	none := func(e Estimator) Estimator {
		e.Divisor = divideNone
		return parity(e)
	}
	return []Estimator{
		parity(Estimator{Name: "verl_grpo", Singleton: singletonUnit}),
		parity(Estimator{Name: "verl_grpo_vectorized", Singleton: singletonUnit}),
		none(Estimator{Name: "verl_drgrpo", Singleton: singletonReward}),
		none(Estimator{Name: "verl_rloo", Center: centerLeaveOneOut, Singleton: singletonReward}),
		none(Estimator{Name: "verl_rloo_vectorized", Center: centerLeaveOneOut}),
		none(Estimator{Name: "verl_opo", Center: centerLengthWeighted, Singleton: singletonReward}),
		none(Estimator{Name: "verl_gpg", Factor: factorNonzero, Singleton: singletonReward}),
		parity(Estimator{Name: "verl_grpo_passk", Center: centerSecondBest, Singleton: singletonError}),
	}
}

func skyrlPresets() []Estimator {
	// Only the last row of a rollout with many rows counts (step_wise_trajectories).
	once := func(e Estimator) Estimator {
		e = parity(e)
		e.Unit = unitRollout
		return e
	}
	return []Estimator{
		once(Estimator{Name: "skyrl_grpo", Singleton: singletonUnit}),
		once(Estimator{Name: "skyrl_drgrpo", Divisor: divideNone, Singleton: singletonReward}),
		once(Estimator{Name: "skyrl_rloo", Center: centerLeaveOneOut, Divisor: divideNone}),
		once(Estimator{Name: "skyrl_maxrl", Divisor: divideMean, Singleton: singletonReward}),
	}
}

func nemoPresets() []Estimator {
	return []Estimator{
		parity(Estimator{Name: "nemo_grpo_loo_std", Arithmetic: arithmeticMeanOfSquares, Center: centerLeaveOneOut, Divisor: divideOthersStd, Place: epsilonIfSpread}),
		parity(Estimator{Name: "nemo_grpo_loo_nostd", Center: centerLeaveOneOut, Divisor: divideNone}),
		parity(Estimator{Name: "nemo_grpo_group_std", Arithmetic: arithmeticMeanOfSquares, Place: epsilonIfSpread}),
		parity(Estimator{Name: "nemo_grpo_group_nostd", Divisor: divideNone}),
	}
}

func trlPresets() []Estimator {
	scorable := func(e Estimator) Estimator {
		e.Grouping, e.Unit, e.Population, e.Constant = groupByPosition, unitRow, populationZero, constantAsIs
		if e.Divisor != divideNone || e.Normalize {
			e.Epsilon = 1e-4
		}
		return e
	}
	return []Estimator{
		scorable(Estimator{Name: "trl_grpo_group"}),
		scorable(Estimator{Name: "trl_grpo_batch", ScaleOver: levelBatch}),
		scorable(Estimator{Name: "trl_grpo_none", Divisor: divideNone}),
		scorable(Estimator{Name: "trl_rloo", Center: centerLeaveOneOut, Divisor: divideNone}),
		scorable(Estimator{Name: "trl_rloo_batchnorm", Center: centerLeaveOneOut, Divisor: divideNone, Normalize: true}),
		{
			Name: "trl_async_grpo", Unit: unitRow, Population: populationZero, Constant: constantAsIs,
			Divisor: divideStd0, Epsilon: 1e-8, Arithmetic: arithmeticPairwise,
		},
	}
}

func primePresets() []Estimator {
	// A trace counts once, however many rows it has, and not at all without a
	// trained token (iter_trainable_traces).
	trainable := func(e Estimator) Estimator {
		e = parity(e)
		e.Unit, e.Masked = unitRollout, maskedLeave
		return e
	}
	return []Estimator{
		trainable(Estimator{Name: "prime_grpo", Divisor: divideNone}),
		trainable(Estimator{Name: "prime_max_rl", Divisor: divideMean, Place: epsilonNone}),
		// One group per problem for its solvers, one over all problems for the
		// proposers: see ProposerKey.
		trainable(Estimator{Name: "prime_hierarchical_grpo", Divisor: divideNone}),
		trainable(Estimator{Name: "prime_rae", Center: centerEMA, Decay: 0.95, Divisor: divideNone}),
	}
}

func areal() Estimator {
	e := parity(Estimator{Name: "areal_norm", Grouping: groupByPosition, Remainder: remainderBare, Epsilon: 1e-5, ScaleAboutCenter: true})
	e.Singleton = singletonAsIs
	return e
}

// ArealNorm returns AReaL's Normalization record; mean and std are "" for the group, "batch" or
// "none".
func ArealNorm(groupSize int, mean, std Choice, leaveOneOut, unbiased bool) Estimator {
	e := areal()
	e.Name += "@" + arealRevision
	e.Size = groupSize
	switch {
	case mean == "none":
		e.Center = centerNone
	case leaveOneOut:
		e.Center, e.CenterOver = centerLeaveOneOut, mean
	default:
		e.CenterOver = mean
	}
	switch {
	case std == "none":
		e.Divisor, e.Epsilon = divideNone, 0
	default:
		e.ScaleOver = std
		if !unbiased {
			e.Divisor = divideStd0
		}
	}
	return e
}
