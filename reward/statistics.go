package reward

import (
	"math"

	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// Statistics answers for the advantages of the rollouts that were added.
type Statistics struct {
	e        Estimator
	index    *keys.Keys
	groups   []groupState
	moments  []stats.Moments // of the groups, nil unless advantages need more than they hold
	batch    stats.Moments
	bare     stats.Moments
	values   [][]float64
	batchSD  float64
	factor   float64
	baseline []float64
	report   Report
}

func (s *Statistics) constant(i int) bool {
	m := &s.moments[i]
	switch {
	case s.e.ToleranceOf == toleranceSpread:
		return m.Spread() <= s.e.tolerance()
	case s.e.Arithmetic == arithmeticMeanOfSquares:
		v := stats.MeanOfSquaresVariance(s.values[i], 0)
		return !(v > s.e.tolerance())
	}
	return m.Variance(0) <= s.e.tolerance()
}

// keepFirst takes back the dropping of the first n groups.
func (s *Statistics) keepFirst(n int) {
	for i := 0; i < len(s.groups) && n > 0; i++ {
		if g := &s.groups[i]; g.dropped {
			g.dropped = false
			n--
		}
	}
}

// divisors computes what advantages are divided by, per group and batch.
func (s *Statistics) divisors() {
	if s.e.Divisor != divideStd && s.e.Divisor != divideStd0 {
		return
	}
	ddof := 1
	if s.e.Divisor == divideStd0 {
		ddof = 0
	}
	if s.e.ScaleOver == levelGroup {
		for i := range s.groups {
			m := &s.moments[i]
			switch {
			case s.e.Arithmetic == arithmeticPairwise:
				s.groups[i].sd = math.Sqrt(stats.PairwiseVariance(s.values[i], ddof))
			case s.e.Arithmetic == arithmeticMeanOfSquares:
				s.groups[i].sd = math.Sqrt(stats.MeanOfSquaresVariance(s.values[i], ddof))
			case !s.e.ScaleAboutCenter:
				s.groups[i].sd = math.Sqrt(m.Variance(ddof))
			case m.N > ddof:
				s.groups[i].sd = math.Sqrt(s.aboutCenter(m, m) / float64(m.N-ddof))
			}
			if m.N == 1 && ddof == 1 {
				s.groups[i].sd = 1 // σ₁ of one value does not exist
			}
		}
		return
	}
	if !s.e.ScaleAboutCenter {
		if s.batchSD = math.Sqrt(s.batch.Variance(ddof)); s.batch.N == 1 && ddof == 1 {
			s.batchSD = 1
		}
		return
	}
	total := 0.0
	if s.e.CenterOver == levelBatch || s.e.Center == centerNone {
		total = s.aboutCenter(&s.batch, &s.batch)
	} else {
		var sum stats.Sum
		for i := range s.groups {
			sum.Add(s.aboutCenter(&s.moments[i], &s.moments[i]))
		}
		sum.Add(s.bare.SumOfSquares()) // their centre is 0
		total = sum.Round()
	}
	if s.batch.N == 1 && ddof == 1 {
		s.batchSD = 1
	} else if s.batch.N > ddof {
		s.batchSD = math.Sqrt(total / float64(s.batch.N-ddof))
	}
}

// aboutCenter is the sum over m of squared deviations from the centre that the
// estimator subtracts, which is own's unless it is the batch's.
func (s *Statistics) aboutCenter(m, own *stats.Moments) float64 {
	if s.e.Center == centerNone {
		return m.SumOfSquares()
	}
	c := own
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

// Report counts what was added. Dropped and Zero are counted by Advantages
// only.
func (s *Statistics) Report() Report { return s.report }

// Advantage is the advantage of a rollout that was added to group, with the
// reward it was added with. It is safe for concurrent use.
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
	a.Value = s.e.Clip.clip(a.Value)
	if !finite(a.Value) {
		return Advantage{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
			"the advantage in group %q is %g: the estimator has a vanishing divisor", group, a.Value).
			WithFix("give the estimator an epsilon")
	}
	return a, nil
}

// advantage is the value before normalisation and clip.
func (s *Statistics) advantage(key string, at int, r RolloutReward) (Advantage, error) {
	if !s.e.takesPart(r) {
		if s.e.Population == populationZero {
			return Advantage{}, nil
		}
		return excluded(s.e.Excludes(r)), nil
	}
	if err := checkReward(key, r); err != nil {
		return Advantage{}, err
	}
	var none groupState
	g := &none
	if at != bare {
		g = &s.groups[at]
		if g.m.N == 0 {
			return Advantage{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
				"no reward of group %q was added in the first pass", key)
		}
	}
	if s.e.Center == centerEMA {
		v := r.Reward - s.baseline[at]
		s.baseline[at] = s.e.Decay*s.baseline[at] + (1-s.e.Decay)*r.Reward
		return Advantage{Value: v * s.factor}, nil
	}
	switch {
	case g.dropped:
		return dropped(droppedConstant), nil
	case g.m.N == 1 && s.e.Singleton != singletonAsIs:
		switch s.e.Singleton {
		case singletonZero:
			return Advantage{}, nil
		case singletonDrop:
			return dropped(droppedSingleton), nil
		case singletonError:
			return Advantage{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID},
				"group %q has one rollout, and the estimator %q refuses such groups", key, s.e.Name)
		}
		if s.e.Singleton == singletonReward {
			return Advantage{Value: r.Reward * s.factor}, nil
		}
		return Advantage{Value: s.e.divide(r.Reward, 1) * s.factor}, nil
	case g.constant && s.e.Constant == constantZero && s.e.centersGroup():
		return Advantage{}, nil
	}
	return Advantage{Value: s.e.divide(s.centered(g, at, r), s.divisor(g, at, r)) * s.factor}, nil
}

// centersGroup reports whether a constant group has advantage 0 but for
// rounding.
func (e *Estimator) centersGroup() bool {
	switch e.Center {
	case centerMean, centerLeaveOneOut, centerLengthWeighted, centerSecondBest:
		return e.CenterOver == levelGroup
	}
	return false
}

// all are the moments of a group, or of the batch.
func (s *Statistics) all(at int, of Choice) *stats.Moments {
	switch {
	case of == levelBatch:
		return &s.batch
	case at == bare:
		return new(stats.Moments)
	}
	return &s.moments[at]
}

func (s *Statistics) centered(g *groupState, at int, r RolloutReward) float64 {
	m := &g.m
	if s.e.CenterOver == levelBatch {
		m = &s.batch.Frozen
	}
	if m.N == 0 {
		return r.Reward
	}
	if s.e.Arithmetic != arithmeticExact {
		return r.Reward - roundedCenter(s.e.Center, s.values[at], r.Reward)
	}
	switch s.e.Center {
	case centerMean:
		return m.Deviation(r.Reward)
	case centerLeaveOneOut:
		if m.N == 1 {
			return r.Reward // no others: their mean is taken for 0
		}
		return m.DeviationFromOthers(r.Reward)
	case centerLengthWeighted:
		return s.all(at, s.e.CenterOver).LengthDeviation(r.Reward)
	case centerBaseline:
		return r.Reward - r.Baseline
	case centerSecondBest:
		if r.Reward < m.Max || m.Second == m.Max {
			return 0
		}
		return m.Max - m.Second
	}
	return r.Reward
}

func (s *Statistics) divisor(g *groupState, at int, r RolloutReward) float64 {
	m := &g.m
	if s.e.ScaleOver == levelBatch {
		m = &s.batch.Frozen
	}
	switch s.e.Divisor {
	case divideNone:
		return 1
	case divideMean:
		return m.Mean()
	case divideOthersStd:
		if s.e.Arithmetic == arithmeticMeanOfSquares {
			return math.Sqrt(stats.MeanOfSquaresVariance(stats.Masked(s.values[at], r.Reward), 1))
		}
		o := s.all(at, s.e.ScaleOver).Without(r.Reward)
		return math.Sqrt(o.Variance(1))
	}
	if s.e.ScaleOver == levelBatch {
		return s.batchSD
	}
	return g.sd
}

// divide applies scale and epsilon. What would divide by nothing has no spread
// and gives 0.
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
	case epsilonUnderRoot:
		return x / math.Sqrt(scale*scale+eps)
	case epsilonFloor:
		return x / math.Max(scale, eps)
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
	others := make([]float64, 0, len(x)-1)
	skipped := false
	for _, v := range x {
		if v == r && !skipped {
			skipped = true
			continue
		}
		others = append(others, v)
	}
	return stats.PairwiseSum(others) / float64(len(others))
}
