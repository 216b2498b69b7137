package reward

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// plain is the estimator's definition in its simplest form: lists, loops and rounded float64 sums, one
// entry per observation.
type plain struct {
	e     Estimator
	group []float64
	batch []float64
	// centres[i] is the value subtracted from batch[i]; deviations are taken about it.
	centres []float64
}

func mean(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}

func spreadAbout(x, about []float64, ddof int) float64 {
	s := 0.0
	for i, v := range x {
		s += (v - about[i]) * (v - about[i])
	}
	return math.Sqrt(s / float64(len(x)-ddof))
}

func constantly(c float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = c
	}
	return out
}

func (e Estimator) plainCenter(set []float64, r float64) float64 {
	switch e.Center {
	case centerMean:
		return mean(set)
	case centerLeaveOneOut:
		return (mean(set)*float64(len(set)) - r) / float64(len(set)-1)
	}
	return 0
}

func (p plain) value(r float64) float64 {
	set := p.group
	if p.e.CenterOver == levelBatch {
		set = p.batch
	}
	x := r - p.e.plainCenter(set, r)
	ddof := 1
	if p.e.Divisor == divideStd0 {
		ddof = 0
	}
	over, about := p.group, []float64(nil)
	for _, v := range over {
		about = append(about, p.e.plainCenter(set, v))
	}
	if p.e.ScaleOver == levelBatch {
		over, about = p.batch, p.centres
	}
	s := 1.0
	switch {
	case p.e.Divisor == divideMean:
		s = mean(over)
	case p.e.Divisor == divideOthersStd:
		others := append([]float64(nil), p.group...)
		for i, v := range others {
			if v == r {
				others = append(others[:i], others[i+1:]...)
				break
			}
		}
		s = spreadAbout(others, constantly(mean(others), len(others)), 1)
	case p.e.Divisor == divideNone:
		return x
	case p.e.ScaleAboutCenter:
		s = spreadAbout(over, about, ddof)
	default:
		s = spreadAbout(over, constantly(mean(over), len(over)), ddof)
	}
	const eps = 0.25 // large, so that the results depend on its place
	if p.e.Place == epsilonNone {
		return x / s
	}
	return x / (s + eps)
}

func TestAgainstPlainDefinition(t *testing.T) {
	rnd := seeded(t)
	tried := map[Choice]int{}
	one := func(of ...Choice) Choice { return of[rnd.IntN(len(of))] }
	divisors := []Choice{divideStd, divideStd0, divideNone, divideMean, divideOthersStd}
	for range 3000 {
		e := Estimator{
			Unit: one(unitRollout, unitRow), Center: one(centerMean, centerNone, centerLeaveOneOut),
			CenterOver: one(levelGroup, levelBatch), Divisor: one(divisors...), ScaleOver: one(levelGroup, levelBatch),
			ScaleAboutCenter: rnd.IntN(2) == 0, Constant: constantAsIs,
			Place: one(epsilonAdded, epsilonNone, epsilonIfSpread),
		}
		if e.Place != epsilonNone {
			e.Epsilon = 0.25
		}
		if e.Validate() != nil {
			continue
		}
		tried[e.Divisor]++
		var groups []GroupRewards
		var p plain
		p.e = e
		expand := func(g GroupRewards) (out []float64) {
			for _, r := range g.Rollouts {
				for range e.count(r) {
					out = append(out, r.Reward)
				}
			}
			return out
		}
		for _, key := range []string{"a", "b", "c"} {
			g := GroupRewards{Key: key}
			for range 3 + rnd.IntN(4) {
				g.Rollouts = append(g.Rollouts, RolloutReward{Reward: 1 + rnd.Float64(), Rows: rnd.IntN(4)})
			}
			groups = append(groups, g)
			p.batch = append(p.batch, expand(g)...)
		}
		for _, g := range groups {
			set := expand(g)
			if e.CenterOver == levelBatch {
				set = p.batch
			}
			for _, r := range expand(g) {
				p.centres = append(p.centres, e.plainCenter(set, r))
			}
		}
		got, _, err := Advantages(groups, e)
		require.NoError(t, err)
		for i, g := range groups {
			p.group = expand(g)
			for j, r := range g.Rollouts {
				require.InDelta(t, p.value(r.Reward), got[i][j].Value, 1e-9, "%+v", e)
			}
		}
	}
	for _, d := range divisors {
		require.Positive(t, tried[d], "no record with the divisor %q was tried", d)
	}
}

func TestLengthWeightedByHand(t *testing.T) {
	g := GroupRewards{Rollouts: []RolloutReward{{Reward: 1, Length: 10}, {Reward: 0, Length: 30}}}
	got := advantages(t, Estimator{Center: centerLengthWeighted, Divisor: divideNone}, g)
	require.Equal(t, []float64{0.75, -0.25}, got[0])
	got = advantages(t, Estimator{Center: centerLengthWeighted, CenterOver: levelBatch, Divisor: divideNone, Constant: constantAsIs}, g)
	require.Equal(t, []float64{0.75, -0.25}, got[0])
	none := GroupRewards{Rollouts: []RolloutReward{{Reward: 1}, {Reward: 0}}}
	require.Equal(t, []float64{1, 0}, advantages(t, Estimator{Center: centerLengthWeighted, Divisor: divideNone}, none)[0], "no length, no centre")
}

func TestStatisticsDescribe(t *testing.T) {
	s, err := GRPO().Statistics([]GroupRewards{group("g", 1, 0, 0, 0), {Key: "h", Rollouts: []RolloutReward{{Excluded: "aborted"}}}})
	require.NoError(t, err)
	_, err = GRPO().Statistics([]GroupRewards{group("g", math.Inf(1))})
	require.ErrorIs(t, err, rollout.KindInput)
	require.Equal(t, map[string]int{"aborted": 1}, s.Report().Excluded)
	dropped, err := s.Advantage("h", RolloutReward{Excluded: "aborted"})
	require.NoError(t, err)
	require.Equal(t, "excluded: aborted", dropped.Dropped)
	_, err = s.Advantage("h", RolloutReward{Reward: 1})
	require.ErrorIs(t, err, rollout.KindInput)

	whole, err := Estimator{Grouping: groupWholeBatch, Divisor: divideNone}.Statistics([]GroupRewards{group("x", 1), group("y", 0)})
	require.NoError(t, err)
	v, err := whole.Advantage("x", RolloutReward{Reward: 1})
	require.NoError(t, err)
	require.Equal(t, 0.5, v.Value)
}

// For any numbers, nothing panics and all results are finite.
func FuzzAdvantages(f *testing.F) {
	f.Add(uint64(1), 1.0, 0.0, -1e-7, uint8(3))
	f.Add(uint64(9), 1e99, -1e99, 5e-324, uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, a, b, c float64, n uint8) {
		r := rand.New(rand.NewPCG(seed, 3))
		presets := Presets()
		e := presets[r.IntN(len(presets))]
		if e.Grouping == groupByPosition {
			e.Size = 1 + r.IntN(4)
		}
		gs := []GroupRewards{{Key: "x"}, {Key: "y"}}
		for range n % 16 {
			g := &gs[r.IntN(2)]
			g.Rollouts = append(g.Rollouts, RolloutReward{Reward: []float64{a, b, c}[r.IntN(3)], Length: r.IntN(3), Rows: r.IntN(3)})
		}
		out, _, err := Advantages(gs, e)
		if err != nil {
			require.ErrorIs(t, err, rollout.KindInput)
			return
		}
		for i := range out {
			for _, v := range out[i] {
				require.True(t, finite(v.Value), "%s: %+v", e.Name, gs)
			}
		}
	})
}
