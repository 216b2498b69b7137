package reward

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// Statistics holds the sums of a batch after all its rewards are counted, and computes the advantage
// of each rollout from them. It stores sums per group and nothing per rollout, except for the rewards
// where an Arithmetic other than the exact one needs them.
type Statistics struct {
	e       Estimator
	index   *keys.Keys // group indices by key
	groups  []groupState
	batch   stats.Moments
	bare    stats.Moments // rows beyond the last slice, which batch includes
	batchSD float64
	factor  float64
	nonzero int // rewards other than 0
	report  Report
}

type groupState struct {
	stats.Moments
	values   []float64 // the rewards in order; nil with exact arithmetic
	baseline float64   // the running mean of the centre "ema"
	sd       float64   // the divisor, where one number serves the whole group
	constant bool
	dropped  bool
}

// Statistics runs the first of two passes over a batch whose rewards are known before its rollouts are
// read again: Statistics.Advantage then returns the same values as Advantages, bit for bit. Estimators
// that are defined by the order of rewards (slices by position, the centre "ema"), that process the
// advantages again (Normalize) or that compare agent steps (the unit "step") are errors of KindInput.
// Duplicate rollouts are not detected.
func (e Estimator) Statistics(groups []GroupRewards) (*Statistics, error) {
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
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Estimator"}, "the estimator %q %s, so it cannot stream", e.Name, why).WithFix("%s", fix)
	}
	s, _, err := newStatistics(groups, e)
	return s, err
}

// newStatistics counts all rewards and returns, for each rollout, the index of the group that it is
// compared within.
func newStatistics(groups []GroupRewards, e Estimator) (*Statistics, [][]int, error) {
	if err := e.Validate(); err != nil {
		return nil, nil, err
	}
	s := &Statistics{e: e, index: new(keys.Keys), factor: 1}
	assigned, err := s.assignGroups(groups)
	if err != nil {
		return nil, nil, err
	}
	for i, g := range groups {
		for j, r := range g.Rollouts {
			if err := s.add(g.Key, assigned[i][j], r); err != nil {
				return nil, nil, err
			}
		}
	}
	s.deriveFromSums()
	return s, assigned, nil
}

func (s *Statistics) ensureGroup(i int) int {
	for len(s.groups) <= i {
		s.groups = append(s.groups, groupState{})
	}
	return i
}

func (s *Statistics) add(key string, g int, r RolloutReward) error {
	s.report.Rollouts++
	if why := s.e.Excludes(r); why != "" {
		increment(&s.report.Excluded, why)
		return nil
	}
	if err := checkReward(key, r); err != nil {
		return err
	}
	s.report.Used++
	k := s.e.count(r)
	if s.e.usesBatch() {
		s.batch.Add(r.Reward, k)
		if r.Reward != 0 {
			s.nonzero += k
		}
	}
	if g == bare {
		s.bare.Add(r.Reward, k)
		return nil
	}
	m := &s.groups[g]
	m.Add(r.Reward, k)
	if s.e.Arithmetic != arithmeticExact {
		for range k {
			m.values = append(m.values, r.Reward)
		}
	}
	if s.e.Center == centerLengthWeighted {
		m.AddLength(r.Reward, r.Length)
		if s.e.CenterOver == levelBatch {
			s.batch.AddLength(r.Reward, r.Length)
		}
	}
	return nil
}

// deriveFromSums derives the values that advantages need from the counted rewards.
func (s *Statistics) deriveFromSums() {
	s.batch.Freeze()
	kept := 0
	for i := range s.groups {
		g := &s.groups[i]
		if g.N == 0 {
			continue
		}
		s.report.Groups++
		g.Freeze()
		g.constant = s.constant(g)
		switch {
		case g.N == 1:
			s.report.Singletons++
		case g.constant:
			s.report.Constant++
		}
		g.dropped = g.constant && s.e.dropsConstant() && (g.N > 1 || s.e.Constant == constantDrop)
		if !g.dropped {
			kept++
		}
	}
	if kept == 0 {
		s.restoreFirst(s.e.KeepConstant)
	}
	if s.e.Factor == factorNonzero {
		s.factor = float64(s.batch.N) / float64(max(s.nonzero, 1))
	}
	s.setDivisors()
}

func (s *Statistics) constant(g *groupState) bool {
	switch {
	case s.e.ToleranceOf == toleranceSpread:
		return g.Spread() <= s.e.tolerance()
	case s.e.Arithmetic == arithmeticMeanOfSquares:
		return !(stats.MeanOfSquaresVariance(g.values, 0) > s.e.tolerance())
	}
	return g.Variance(0) <= s.e.tolerance()
}

// restoreFirst restores the first n dropped groups.
func (s *Statistics) restoreFirst(n int) {
	for i := 0; i < len(s.groups) && n > 0; i++ {
		if g := &s.groups[i]; g.dropped {
			g.dropped = false
			n--
		}
	}
}

// setDivisors computes the divisors of advantages, per group or for the batch.
func (s *Statistics) setDivisors() {
	if s.e.Divisor != divideStd && s.e.Divisor != divideStd0 {
		return
	}
	ddof := 1
	if s.e.Divisor == divideStd0 {
		ddof = 0
	}
	about := func(m *stats.Moments) float64 {
		switch {
		case !s.e.ScaleAboutCenter:
			return m.Variance(ddof)
		case m.N <= ddof:
			return 0
		}
		return s.aboutCenter(m) / float64(m.N-ddof)
	}
	if s.e.ScaleOver == levelGroup {
		for i := range s.groups {
			g := &s.groups[i]
			switch {
			case g.N == 1 && ddof == 1:
				g.sd = 1 // σ₁ of one value does not exist
			case s.e.Arithmetic == arithmeticPairwise:
				g.sd = math.Sqrt(stats.PairwiseVariance(g.values, ddof))
			case s.e.Arithmetic == arithmeticMeanOfSquares:
				g.sd = math.Sqrt(stats.MeanOfSquaresVariance(g.values, ddof))
			default:
				g.sd = math.Sqrt(about(&g.Moments))
			}
		}
		return
	}
	switch {
	case s.batch.N == 1 && ddof == 1:
		s.batchSD = 1
	case !s.e.ScaleAboutCenter || s.e.CenterOver == levelBatch || s.e.Center == centerNone:
		s.batchSD = math.Sqrt(about(&s.batch))
	case s.batch.N > ddof: // each about the centre of its group
		var sum stats.Sum
		for i := range s.groups {
			sum.Add(s.aboutCenter(&s.groups[i].Moments))
		}
		sum.Add(s.bare.SumOfSquares()) // their centre is 0
		s.batchSD = math.Sqrt(sum.Round() / float64(s.batch.N-ddof))
	}
}

// aboutCenter returns the sum, over the rewards of m, of squared deviations from the centre that the
// estimator subtracts: the mean of m, or of the batch.
func (s *Statistics) aboutCenter(m *stats.Moments) float64 {
	if s.e.Center == centerNone {
		return m.SumOfSquares()
	}
	c := m
	if s.e.CenterOver == levelBatch {
		c = &s.batch
	}
	if c.N == 0 {
		return 0
	}
	ss := m.SquaresAbout(c)
	if s.e.Center == centerLeaveOneOut {
		if c.N == 1 {
			return m.SumOfSquares()
		}
		f := float64(c.N) / float64(c.N-1)
		ss *= f * f
	}
	return max(ss, 0)
}

// Report returns the counts of the batch's rewards. Only Advantages counts Dropped.
func (s *Statistics) Report() Report { return s.report }

// Advantage returns the advantage of a rollout of group, given with the same reward as in the first
// pass. It is safe for concurrent use.
func (s *Statistics) Advantage(group string, r RolloutReward) (Advantage, error) {
	g := 0
	if s.e.Grouping != groupWholeBatch {
		var ok bool
		if g, ok = s.index.Of(group); !ok {
			return Advantage{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
				"group %q was not added in the first pass", group)
		}
	}
	a, err := s.advantage(group, g, r)
	if err != nil {
		return Advantage{}, err
	}
	return s.clipped(a, group, r)
}

// clipped returns a after clipping, or an error where its value is not finite.
func (s *Statistics) clipped(a Advantage, group string, r RolloutReward) (Advantage, error) {
	if a.Value = s.e.Clip.clip(a.Value); !finite(a.Value) {
		return Advantage{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
			"the advantage in group %q is %g: the estimator has a vanishing divisor", group, a.Value).
			WithFix("give the estimator an epsilon")
	}
	return a, nil
}

// advantage returns the advantage before normalisation and clipping.
func (s *Statistics) advantage(key string, at int, r RolloutReward) (Advantage, error) {
	if why := s.e.Excludes(r); why != "" {
		if s.e.Population == populationZero {
			return Advantage{}, nil
		}
		return excluded(why), nil
	}
	if err := checkReward(key, r); err != nil {
		return Advantage{}, err
	}
	var g *groupState
	if at == bare {
		g = new(groupState)
	} else if g = &s.groups[at]; g.N == 0 {
		return Advantage{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
			"no reward of group %q was added in the first pass", key)
	}
	if s.e.Center == centerEMA {
		v := r.Reward - g.baseline
		g.baseline = s.e.Decay*g.baseline + (1-s.e.Decay)*r.Reward
		return Advantage{Value: v * s.factor}, nil
	}
	switch {
	case g.dropped:
		return dropped(droppedConstant), nil
	case g.N == 1 && s.e.Singleton != singletonAsIs:
		switch s.e.Singleton {
		case singletonZero:
			return Advantage{}, nil
		case singletonDrop:
			return dropped(droppedSingleton), nil
		case singletonReward:
			return Advantage{Value: r.Reward * s.factor}, nil
		case singletonError:
			return Advantage{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
				"group %q has one rollout, and the estimator %q refuses such groups", key, s.e.Name)
		}
		return Advantage{Value: s.e.divide(r.Reward, 1) * s.factor}, nil
	case g.constant && s.e.Constant == constantZero && s.e.centersGroup():
		return Advantage{}, nil
	}
	return Advantage{Value: s.e.divide(s.centered(g, r), s.divisor(g, r)) * s.factor}, nil
}

// centersGroup reports whether the centre of a constant group equals its rewards, so that its
// advantages are 0 up to rounding.
func (e *Estimator) centersGroup() bool {
	switch e.Center {
	case centerMean, centerLeaveOneOut, centerLengthWeighted, centerSecondBest:
		return e.CenterOver == levelGroup
	}
	return false
}

// moments returns the moments of the batch or of g.
func (s *Statistics) moments(level Choice, g *groupState) *stats.Moments {
	if level == levelBatch {
		return &s.batch
	}
	return &g.Moments
}

func (s *Statistics) centered(g *groupState, r RolloutReward) float64 {
	m := s.moments(s.e.CenterOver, g)
	if m.N == 0 {
		return r.Reward
	}
	if s.e.Arithmetic != arithmeticExact {
		return r.Reward - roundedCenter(s.e.Center, g.values, r.Reward)
	}
	switch s.e.Center {
	case centerMean:
		return m.Deviation(r.Reward)
	case centerLeaveOneOut:
		if m.N == 1 {
			return r.Reward // without others, their mean counts as 0
		}
		return m.DeviationFromOthers(r.Reward)
	case centerLengthWeighted:
		return m.LengthDeviation(r.Reward)
	case centerSecondBest:
		if r.Reward < m.Max {
			return 0
		}
		return m.Max - m.Second
	}
	return r.Reward
}

func (s *Statistics) divisor(g *groupState, r RolloutReward) float64 {
	m := s.moments(s.e.ScaleOver, g)
	switch s.e.Divisor {
	case divideNone:
		return 1
	case divideMean:
		return m.Mean()
	case divideOthersStd:
		if s.e.Arithmetic == arithmeticMeanOfSquares {
			return math.Sqrt(stats.MeanOfSquaresVariance(stats.Masked(g.values, r.Reward), 1))
		}
		o := m.Without(r.Reward)
		return math.Sqrt(o.Variance(1))
	}
	if s.e.ScaleOver == levelBatch {
		return s.batchSD
	}
	return g.sd
}

// divide applies the scale and the epsilon. It returns 0 where the divisor would be 0, which means
// that there is no spread.
func (e *Estimator) divide(x, scale float64) float64 {
	if e.Divisor == divideNone {
		return x
	}
	eps := e.epsilon()
	switch e.Place {
	case epsilonNone:
		if scale <= 0 {
			return 0
		}
		return x / scale
	case epsilonIfSpread:
		if scale <= 0 {
			return x
		}
	}
	return x / (scale + eps)
}

func roundedCenter(c Choice, x []float64, r float64) float64 {
	switch {
	case c == centerNone || len(x) == 0:
		return 0
	case c == centerMean:
		return stats.PairwiseSum(x) / float64(len(x))
	case len(x) == 1:
		return r
	}
	others := slices.Clone(x)
	if i := slices.Index(x, r); i >= 0 {
		others = slices.Delete(others, i, i+1)
	}
	return stats.PairwiseSum(others) / float64(len(others))
}
