package reward

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func group(key string, rewards ...float64) GroupRewards {
	g := GroupRewards{Key: key}
	for i, r := range rewards {
		g.Rollouts = append(g.Rollouts, RolloutReward{ID: fmt.Sprintf("%s/%d", key, i), Reward: r, Length: 1 + i*7%5})
	}
	return g
}

func advantages(t *testing.T, e Estimator, groups ...GroupRewards) [][]float64 {
	t.Helper()
	got, _, err := Advantages(groups, e)
	require.NoError(t, err)
	out := make([][]float64, len(got))
	for i := range got {
		for _, a := range got[i] {
			out[i] = append(out[i], a.Value)
		}
	}
	return out
}

func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func TestGRPOByHand(t *testing.T) {
	// mean 0.25, σ₁ = √(0.75/3) = 0.5
	got := advantages(t, GRPO(), group("a", 1, 0, 0, 0))
	require.InDeltaSlice(t, []float64{0.75 / (0.5 + 1e-6), -0.25 / (0.5 + 1e-6), -0.25 / (0.5 + 1e-6), -0.25 / (0.5 + 1e-6)}, got[0], 1e-15)
}

func TestDefaultsOnGroupsThatCannotBeCompared(t *testing.T) {
	many := make([]float64, 24)
	for i := range many {
		many[i] = 0.1
	}
	noisy := []float64{0.7, float64(float32(0.7)), 0.7, 0.7}
	gs := []GroupRewards{group("constant", many...), group("noisy", noisy...), group("single", 1), group("empty"), group("varied", 1, 0)}
	gs[4].Rollouts = append(gs[4].Rollouts, RolloutReward{ID: "x", Excluded: "aborted", Reward: math.NaN()})
	got, report, err := Advantages(gs, Estimator{})
	require.NoError(t, err)
	for i := range 3 {
		for _, a := range got[i] {
			require.Zero(t, a.Value)
			require.Empty(t, a.Dropped)
		}
	}
	require.Equal(t, Advantage{Dropped: "excluded: aborted"}, got[4][2])
	require.InDelta(t, 0.5/(math.Sqrt(0.5)+1e-6), got[4][0].Value, 1e-15, "the excluded rollout left the statistics")
	require.Equal(t, Report{
		Groups: 4, Rollouts: 32, Used: 31, Singletons: 1, Constant: 2,
		Excluded: map[string]int{"aborted": 1}, Dropped: map[string]int{"excluded: aborted": 1},
	}, report)
}

func TestInputErrors(t *testing.T) {
	for _, c := range []struct {
		reason string
		groups []GroupRewards
		e      Estimator
	}{
		{"NaN", []GroupRewards{group("a", 1, math.NaN())}, GRPO()},
		{"infinite", []GroupRewards{group("a", 1, math.Inf(-1))}, GRPO()},
		{"too large to square", []GroupRewards{group("a", 1, 1e200)}, GRPO()},
		{"the same rollout twice", []GroupRewards{group("a", 1, 0), group("a", 1)}, GRPO()},
		{"negative length", []GroupRewards{{Rollouts: []RolloutReward{{Length: -1}}}}, GRPO()},
		{"ragged rows by position", []GroupRewards{group("a", 1, 0, 1)}, Estimator{Grouping: groupByPosition, Size: 2}},
		{"a refused singleton", []GroupRewards{group("a", 1)}, Estimator{Singleton: singletonError}},
		{"a bad record", nil, Estimator{Center: "median"}},
	} {
		_, _, err := Advantages(c.groups, c.e)
		require.ErrorIs(t, err, rollout.KindInput, c.reason)
	}
}

func TestValidateReportsEveryFault(t *testing.T) {
	err := Estimator{Grouping: "name", Epsilon: -1, Decay: 2, Size: 3, KeepConstant: -1, Clip: &Range{1, 0}, Override: Override{InvalidToolCall: ptr(math.NaN())}}.Validate()
	for _, field := range []string{"Grouping", "Epsilon", "Decay", "Size", "KeepConstant", "Clip", "Override.InvalidToolCall"} {
		require.ErrorContains(t, err, field)
	}
	for _, e := range Presets() {
		if e.Grouping == groupByPosition {
			require.ErrorContains(t, e.Validate(), "Size", e.Name)
			e.Size = 4
		}
		require.NoError(t, e.Validate(), e.Name)
	}
}

// randomGroups returns random groups of varying sizes with awkward rewards: equal values, large
// offsets, tiny spreads.
func randomGroups(r *rand.Rand) []GroupRewards {
	gs := make([]GroupRewards, 1+r.IntN(6))
	for i := range gs {
		n := 1 + r.IntN(9)
		offset := []float64{0, 1e6, -0.3, 1e-7}[r.IntN(4)]
		scale := []float64{1, 1e-9, 100, 0}[r.IntN(4)]
		rewards := make([]float64, n)
		for j := range rewards {
			rewards[j] = offset + scale*[]float64{r.Float64(), float64(r.IntN(2)), 0.1}[r.IntN(3)]
		}
		gs[i] = group(fmt.Sprintf("g%d", i), rewards...)
	}
	return gs
}

func byID(t *testing.T, gs []GroupRewards, e Estimator) map[string]Advantage {
	t.Helper()
	got, _, err := Advantages(gs, e)
	require.NoError(t, err)
	out := map[string]Advantage{}
	for i, g := range gs {
		for j, r := range g.Rollouts {
			out[r.ID] = got[i][j]
		}
	}
	return out
}

func ordered(e Estimator) bool {
	return e.Grouping == groupByPosition || e.Center == centerEMA || e.KeepConstant > 0 || e.Arithmetic != arithmeticExact || e.Singleton == singletonError
}

// The order of groups and of rollouts within them does not change a single bit, and groups split over
// several records count as one.
func TestOrderChangesNothing(t *testing.T) {
	r := seeded(t)
	for _, e := range Presets() {
		if ordered(e) {
			continue
		}
		for range 40 {
			gs := randomGroups(r)
			want := byID(t, gs, e)
			var split []GroupRewards
			for _, g := range gs {
				for _, x := range g.Rollouts {
					split = append(split, GroupRewards{g.Key, []RolloutReward{x}})
				}
			}
			r.Shuffle(len(split), func(i, j int) { split[i], split[j] = split[j], split[i] })
			require.Equal(t, want, byID(t, split, e), e.Name)
		}
	}
}

// Statistics in two passes and Advantages return the same bits.
func TestStatisticsEqualAdvantages(t *testing.T) {
	r := seeded(t)
	streamed := map[string]bool{}
	for _, e := range Presets() {
		_, err := e.Statistics(nil)
		if err != nil {
			require.ErrorIs(t, err, rollout.KindInput)
			require.NotContains(t, err.Error(), "Size", "what it cannot take comes before what it lacks")
			continue
		}
		streamed[e.Name] = true
		gs := randomGroups(r)
		if e.Singleton == singletonError {
			gs = []GroupRewards{group("a", 1, 3, 2)}
		}
		gs[0].Rollouts[0].Excluded = "aborted"
		s, err := e.Statistics(gs)
		require.NoError(t, err)
		want := byID(t, gs, e)
		for _, g := range gs {
			for _, x := range g.Rollouts {
				got, err := s.Advantage(g.Key, x)
				require.NoError(t, err)
				require.Equal(t, want[x.ID], got, e.Name)
			}
		}
		_, err = s.Advantage("never added", RolloutReward{})
		if e.Grouping == groupByKey {
			require.ErrorIs(t, err, rollout.KindInput)
		}
	}
	for _, e := range Presets() {
		ordered := e.Grouping == groupByPosition || e.Center == centerEMA || e.Normalize || e.Unit == unitStep
		require.Equal(t, !ordered, streamed[e.Name], "%s, by group and not by order, streams", e.Name)
	}
}

func TestGroupsNeverMix(t *testing.T) {
	a, b := group("a", 1, 0, 0), group("b", 5, 6, 7, 8, 100)
	alone := advantages(t, GRPO(), a)
	together := advantages(t, GRPO(), b, a)
	require.Equal(t, alone[0], together[1])
	dropped := advantages(t, GRPO(), GroupRewards{"b", b.Rollouts[1:]}, a)
	require.Equal(t, alone[0], dropped[1], "a row dropped from one group moves no other group")
}

func TestShiftScaleAndSum(t *testing.T) {
	r := seeded(t)
	for range 200 {
		rewards := make([]float64, 2+r.IntN(8))
		for i := range rewards {
			rewards[i] = float64(r.IntN(64)) / 8 // shifts and doublings stay exact
		}
		rewards[0] = 9
		g := group("a", rewards...)
		shifted := group("a", rewards...)
		doubled := group("a", rewards...)
		for i := range rewards {
			shifted.Rollouts[i].Reward += 1024
			doubled.Rollouts[i].Reward *= 2
		}
		want := advantages(t, GRPO(), g)[0]
		require.Equal(t, want, advantages(t, GRPO(), shifted)[0], "a shift changes nothing")
		for _, e := range []Estimator{{Divisor: divideNone}, {Center: centerLeaveOneOut, Divisor: divideNone}} {
			one, two := advantages(t, e, g)[0], advantages(t, e, doubled)[0]
			for i := range one {
				require.Equal(t, 2*one[i], two[i], "without a divisor the scale goes through")
			}
		}
		noEps := Estimator{Place: epsilonNone}
		require.Equal(t, advantages(t, noEps, g), advantages(t, noEps, doubled), "without epsilon the scale cancels")
		for _, e := range []Estimator{GRPO(), {Divisor: divideNone}, {Center: centerLeaveOneOut, Divisor: divideNone}} {
			sum := 0.0
			for _, v := range advantages(t, e, g)[0] {
				sum += v
			}
			require.InDelta(t, 0, sum, 1e-12)
		}
	}
}

func TestCredit(t *testing.T) {
	seq, err := rollout.Columns{
		IDs: []rollout.TokenID{0, 1, 2, 3}, Source: make([]int32, 4), Turn: []int32{-1, -1, 0, 0},
		Flags: []rollout.Flag{0, 0, rollout.FlagSampled, rollout.FlagSampled},
	}.Sequence(rollout.Identity{Rollout: "r"}, 0)
	require.NoError(t, err)
	_, err = Credit(seq, 1)
	require.ErrorIs(t, err, rollout.KindInput, "without weights nobody knows the trained tokens")
	seq, err = seq.WithWeight([]float32{0, 0, 0.5, 1})
	require.NoError(t, err)
	got, err := Credit(seq, -1.5)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, -1.5, -1.5}, got.Credit)
	require.NoError(t, got.Check())
	for _, bad := range []float64{math.NaN(), math.Inf(1), 1e300} {
		_, err = Credit(seq, bad)
		require.ErrorIs(t, err, rollout.KindInput)
	}
}
