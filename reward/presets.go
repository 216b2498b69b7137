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

// Presets lists the estimators of trainers, each named system_formula@revision,
// after GRPO, the default of this module. They reproduce the formulas,
// shortcomings included: most count rows rather than rollouts, keep the noise of
// constant groups, or group by position. A preset with GroupByPosition needs
// Size set to the number of rollouts per prompt.
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

// Preset returns the estimator of that name, with or without its revision.
func Preset(name string) (Estimator, bool) {
	for _, e := range Presets() {
		if sameName(e.Name, name) {
			return e, true
		}
	}
	return Estimator{}, false
}

// ByKey is e with groups by key where it groups by position, under its name with
// ":key" after it. Where every group is whole and contiguous, as those estimators expect,
// the advantages are the same; where one is not, no other shifts.
func ByKey(e Estimator) Estimator {
	if e.Grouping != GroupByPosition {
		return e
	}
	e.Grouping, e.Size, e.Remainder = GroupByKey, 0, RemainderError
	e.Name += ":key"
	return e
}

func sameName(full, name string) bool {
	base, _, _ := strings.Cut(full, "@")
	return full == name || base == name
}

// ProposerKey is the group key of the rollouts that wrote the problems, for
// estimators that compare solvers within a problem and proposers over all
// problems of a batch (prime-rl's hierarchical GRPO, self-play).
const ProposerKey = "\x00proposer"

// parity is what the presets share: rows count, and constant groups keep what
// rounding leaves. Excluded rollouts leave the statistics here too: the systems
// have no word for them, and would have to be given a made-up reward.
func parity(e Estimator) Estimator {
	e.Unit, e.Constant = UnitRow, ConstantAsIs
	return e
}

func slimePresets() []Estimator {
	sliced := func(e Estimator) Estimator {
		e.Grouping, e.Remainder = GroupByPosition, RemainderOneGroup
		return parity(e)
	}
	return []Estimator{
		// A single sample per prompt is NaN in the source.
		sliced(Estimator{Name: "slime_grpo", Singleton: SingletonDrop}),
		sliced(Estimator{Name: "slime_grpo_nostd", Divisor: DivideNone}),
	}
}

func openclawPresets() []Estimator {
	return []Estimator{
		parity(Estimator{Name: "openclaw_grpo"}),
		parity(Estimator{Name: "openclaw_grpo_nostd", Divisor: DivideNone}),
		{
			Name: "openclaw_grpo_drop_constant", Unit: UnitRow,
			Constant: ConstantDrop, KeepConstant: 1, Tolerance: 1e-12,
		},
		{Name: "openclaw_grpo_dynamic_history", Constant: ConstantAsIs},
		{
			Name: "openclaw_step_wise", Unit: UnitStep, Divisor: DivideStd0, Singleton: SingletonReward,
			Constant: ConstantDropPlural, KeepConstant: 1, Tolerance: 1e-12, ToleranceOf: ToleranceVariance,
			Arithmetic: ArithmeticMeanOfSquares,
		},
	}
}

func verlPresets() []Estimator {
	none := func(e Estimator) Estimator {
		e.Divisor = DivideNone
		return parity(e)
	}
	return []Estimator{
		parity(Estimator{Name: "verl_grpo", Singleton: SingletonUnit}),
		parity(Estimator{Name: "verl_grpo_vectorized", Singleton: SingletonUnit}),
		none(Estimator{Name: "verl_drgrpo", Singleton: SingletonReward}),
		none(Estimator{Name: "verl_rloo", Center: CenterLeaveOneOut, Singleton: SingletonReward}),
		none(Estimator{Name: "verl_rloo_vectorized", Center: CenterLeaveOneOut}),
		none(Estimator{Name: "verl_opo", Center: CenterLengthWeighted, Singleton: SingletonReward}),
		none(Estimator{Name: "verl_gpg", Factor: FactorNonzero, Singleton: SingletonReward}),
		parity(Estimator{Name: "verl_grpo_passk", Center: CenterSecondBest, Singleton: SingletonError}),
	}
}

func skyrlPresets() []Estimator {
	// Of a rollout in many rows the last one counts (step_wise_trajectories).
	once := func(e Estimator) Estimator {
		e = parity(e)
		e.Unit = UnitRollout
		return e
	}
	return []Estimator{
		once(Estimator{Name: "skyrl_grpo", Singleton: SingletonUnit}),
		once(Estimator{Name: "skyrl_drgrpo", Divisor: DivideNone, Singleton: SingletonReward}),
		once(Estimator{Name: "skyrl_rloo", Center: CenterLeaveOneOut, Divisor: DivideNone}),
		once(Estimator{Name: "skyrl_maxrl", Divisor: DivideMean, Singleton: SingletonReward}),
	}
}

func nemoPresets() []Estimator {
	return []Estimator{
		parity(Estimator{Name: "nemo_grpo_loo_std", Arithmetic: ArithmeticMeanOfSquares, Center: CenterLeaveOneOut, Divisor: DivideOthersStd, Place: EpsilonIfSpread}),
		parity(Estimator{Name: "nemo_grpo_loo_nostd", Center: CenterLeaveOneOut, Divisor: DivideNone}),
		parity(Estimator{Name: "nemo_grpo_group_std", Arithmetic: ArithmeticMeanOfSquares, Place: EpsilonIfSpread}),
		parity(Estimator{Name: "nemo_grpo_group_nostd", Divisor: DivideNone}),
	}
}

func trlPresets() []Estimator {
	scorable := func(e Estimator) Estimator {
		e.Grouping, e.Unit, e.Population, e.Constant = GroupByPosition, UnitRow, PopulationZero, ConstantAsIs
		if e.Divisor != DivideNone || e.Normalize {
			e.Epsilon = 1e-4
		}
		return e
	}
	return []Estimator{
		scorable(Estimator{Name: "trl_grpo_group"}),
		scorable(Estimator{Name: "trl_grpo_batch", ScaleOver: LevelBatch}),
		scorable(Estimator{Name: "trl_grpo_none", Divisor: DivideNone}),
		scorable(Estimator{Name: "trl_rloo", Center: CenterLeaveOneOut, Divisor: DivideNone}),
		scorable(Estimator{Name: "trl_rloo_batchnorm", Center: CenterLeaveOneOut, Divisor: DivideNone, Normalize: true}),
		{
			Name: "trl_async_grpo", Unit: UnitRow, Population: PopulationZero, Constant: ConstantAsIs,
			Divisor: DivideStd0, Epsilon: 1e-8, Arithmetic: ArithmeticPairwise,
		},
	}
}

func primePresets() []Estimator {
	// A trace counts once, however many rows it has, and not at all without a
	// trained token (iter_trainable_traces).
	trainable := func(e Estimator) Estimator {
		e = parity(e)
		e.Unit, e.Masked = UnitRollout, MaskedLeave
		return e
	}
	return []Estimator{
		trainable(Estimator{Name: "prime_grpo", Divisor: DivideNone}),
		trainable(Estimator{Name: "prime_max_rl", Divisor: DivideMean, Place: EpsilonNone}),
		// One group per problem for its solvers, one over all problems for the
		// proposers: see ProposerKey.
		trainable(Estimator{Name: "prime_hierarchical_grpo", Divisor: DivideNone}),
		trainable(Estimator{Name: "prime_rae", Center: CenterEMA, Decay: 0.95, Divisor: DivideNone}),
	}
}

func areal() Estimator {
	e := parity(Estimator{Name: "areal_norm", Grouping: GroupByPosition, Remainder: RemainderBare, Epsilon: 1e-5, ScaleAboutCenter: true})
	e.Singleton = SingletonAsIs
	return e
}

// ArealNorm builds AReaL's Normalization record. A level of nil is none.
func ArealNorm(groupSize int, mean, std *Level, leaveOneOut, unbiased bool) Estimator {
	e := areal()
	e.Name += "@" + arealRevision
	e.Size = groupSize
	switch {
	case mean == nil:
		e.Center = CenterNone
	case leaveOneOut:
		e.Center, e.CenterOver = CenterLeaveOneOut, *mean
	default:
		e.CenterOver = *mean
	}
	switch {
	case std == nil:
		e.Divisor, e.Epsilon = DivideNone, 0
	default:
		e.ScaleOver = *std
		if !unbiased {
			e.Divisor = DivideStd0
		}
	}
	return e
}
