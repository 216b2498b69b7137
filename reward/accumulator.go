package reward

import (
	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// Accumulator is the streaming form of Advantages for a job in two passes: Add
// every rollout in the first, Finish, and ask the Statistics in the second. It
// keeps sums per group and nothing per rollout, but the rewards where an
// Arithmetic other than the exact one needs them; the results are those of
// Advantages, bit for bit. It does not see whether a rollout was added twice.
type Accumulator struct {
	e      Estimator
	index  *keys.Keys // of groups
	groups []stats.Moments
	batch  stats.Moments
	bare   stats.Moments // rows beyond the last slice, already in batch
	report Report
	// values are the rewards of each group in order, unless the arithmetic is exact.
	values  [][]float64
	nonzero int // rewards other than 0
	// lastKey is the key of group last: rollouts mostly arrive group by group.
	lastKey string
	last    int
	// baseline is the running mean per group, of the centre "ema".
	baseline []float64
}

type groupState struct {
	m        stats.Frozen
	sd       float64 // divisor when it is one number for the group
	constant bool
	dropped  bool
}

// NewAccumulator returns an empty accumulator. Estimators defined by the order
// of rewards (slices by position, the centre "ema"), by a second look at the advantages
// (Normalize) or by agent steps (the unit "step") cannot stream and are errors of
// KindInput.
func NewAccumulator(e Estimator) (*Accumulator, error) {
	why, fix := "", "use Advantages"
	switch {
	case e.Unit == unitStep:
		why, fix = "compares agent steps and not rollouts", "use StepsOf, StepAdvantages and CreditSteps"
	case e.Grouping == groupByPosition:
		why = "cuts the batch into slices by position"
	case e.Center == centerEMA:
		why = "takes one reward after the other in their order"
	case e.Normalize:
		why = "looks at all advantages a second time"
	}
	if why != "" {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the estimator %q %s, so it cannot stream", e.Name, why).WithFix("%s", fix)
	}
	return newAccumulator(e)
}

func newAccumulator(e Estimator) (*Accumulator, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return &Accumulator{e: e, index: new(keys.Keys)}, nil
}

// Add counts one rollout. group is ignored where the whole batch is one.
func (a *Accumulator) Add(group string, r RolloutReward) error {
	if a.index == nil {
		return zero.Value("reward.Accumulator", "NewAccumulator, anew after Finish")
	}
	g := 0
	if a.e.Grouping == groupWholeBatch {
		g = a.numbered(0)
	} else {
		g = a.group(group)
	}
	return a.add(group, g, r)
}

func (a *Accumulator) group(key string) int {
	if key == a.lastKey && a.last < len(a.groups) {
		return a.last
	}
	g, _ := a.index.Add(key)
	a.lastKey, a.last = key, a.numbered(g)
	return g
}

func (a *Accumulator) numbered(i int) int {
	for len(a.groups) <= i {
		a.groups = append(a.groups, stats.Moments{})
		if a.e.Center == centerEMA {
			a.baseline = append(a.baseline, 0)
		}
	}
	return i
}

func (a *Accumulator) add(key string, g int, r RolloutReward) error {
	a.report.Rollouts++
	if why := a.e.Excludes(r); why != "" {
		if a.report.Excluded == nil {
			a.report.Excluded = map[string]int{}
		}
		a.report.Excluded[why]++
	}
	if !a.e.takesPart(r) {
		return nil
	}
	if err := checkReward(key, r); err != nil {
		return err
	}
	a.report.Used++
	k := a.e.count(r)
	if a.e.usesBatch() {
		a.batch.Add(r.Reward, k)
		if r.Reward != 0 {
			a.nonzero += k
		}
	}
	if g == bare {
		a.bare.Add(r.Reward, k)
		return nil
	}
	m := &a.groups[g]
	m.Add(r.Reward, k)
	if a.e.Arithmetic != arithmeticExact {
		for len(a.values) < len(a.groups) {
			a.values = append(a.values, nil)
		}
		for range k {
			a.values[g] = append(a.values[g], r.Reward)
		}
	}
	if a.e.Center == centerLengthWeighted {
		m.AddLength(r.Reward, r.Length)
		if a.e.CenterOver == levelBatch {
			a.batch.AddLength(r.Reward, r.Length)
		}
	}
	return nil
}

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

// Finish ends the first pass. The accumulator must not be used afterwards.
func (a *Accumulator) Finish() *Statistics {
	s := &Statistics{e: a.e, index: a.index, moments: a.groups, groups: make([]groupState, len(a.groups)), batch: a.batch, bare: a.bare, values: a.values,
		report: a.report, baseline: a.baseline, factor: 1}
	nonzero := a.nonzero
	*a = Accumulator{}
	s.batch.Freeze()
	for len(s.values) < len(s.groups) && s.e.Arithmetic != arithmeticExact {
		s.values = append(s.values, nil)
	}
	kept := 0
	for i := range s.groups {
		g := &s.groups[i]
		if s.moments[i].N == 0 {
			continue
		}
		s.report.Groups++
		s.moments[i].Freeze()
		g.m = s.moments[i].Frozen
		g.constant = s.constant(i)
		switch {
		case g.m.N == 1:
			s.report.Singletons++
		case g.constant:
			s.report.Constant++
		}
		g.dropped = g.constant && s.e.dropsConstant() && (g.m.N > 1 || s.e.Constant == constantDrop)
		if !g.dropped {
			kept++
		}
	}
	if kept == 0 {
		s.keepFirst(s.e.KeepConstant)
	}
	if s.e.Factor == factorNonzero {
		s.factor = float64(s.batch.N) / float64(max(nonzero, 1))
	}
	s.divisors()
	if s.e.Divisor != divideOthersStd && s.e.Center != centerLengthWeighted {
		s.moments = nil
	}
	return s
}
