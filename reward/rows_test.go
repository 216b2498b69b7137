package reward_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward"
)

// For an estimator that counts rows, a rollout of k rows equals k rollouts of one row with the same
// reward and, together, its length.
func TestRowsAreRepeatedRewards(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, e := range reward.Presets() {
		if e.Unit != "row" || e.Grouping != "" || e.Center == "ema" {
			continue
		}
		for range 50 {
			var packed, spread []reward.GroupRewards
			for g := range 1 + rng.IntN(4) {
				one := reward.GroupRewards{Key: fmt.Sprint(g)}
				many := one
				for i := range 1 + rng.IntN(5) {
					r := reward.RolloutReward{ID: fmt.Sprint(i), Reward: []float64{0, 1, 0.5, rng.NormFloat64()}[rng.IntN(4)]}
					if rng.IntN(8) == 0 {
						r.Excluded = "lost"
					}
					k := 1 + rng.IntN(4)
					for j := range k {
						row := r
						row.ID, row.Length = fmt.Sprintf("%d/%d", i, j), 1+rng.IntN(9)
						r.Length += row.Length
						many.Rollouts = append(many.Rollouts, row)
					}
					r.Rows = k
					one.Rollouts = append(one.Rollouts, r)
				}
				packed, spread = append(packed, one), append(spread, many)
			}
			a, _, errA := reward.Advantages(packed, e)
			b, _, errB := reward.Advantages(spread, e)
			require.Equal(t, errA == nil, errB == nil, "%s: %v, %v", e.Name, errA, errB)
			for g := range a {
				at := 0
				for i, x := range a[g] {
					for range packed[g].Rollouts[i].Rows {
						y := b[g][at]
						require.Equal(t, x.Dropped, y.Dropped, e.Name)
						require.LessOrEqual(t, math.Abs(x.Value-y.Value), 1e-9*max(1, math.Abs(y.Value)), "%s, group %d, rollout %d, seed %d", e.Name, g, i, seed)
						at++
					}
				}
			}
		}
	}
}

// slime discounts the return at every token of the response, verl at trained tokens only.
func TestDiscountOverGaps(t *testing.T) {
	one := []reward.TokenGroup{{Key: "g", Rollouts: []reward.TokenRollout{{ID: "a", Reward: 8, Mask: []bool{false, true, false, false, true, true, false}}}}}
	for _, c := range []struct {
		gaps bool
		want []float64
	}{{true, []float64{0, 0.5, 0, 0, 4, 8, 0}}, {false, []float64{0, 2, 0, 0, 4, 8, 0}}} {
		e := reward.TokenEstimator{Center: "none", Discount: 0.5, Gaps: c.gaps, Whiten: reward.Whiten{Off: true}}
		got, err := reward.TokenAdvantages(one, e)
		require.NoError(t, err)
		require.Equal(t, c.want, got[0][0])
	}
	require.ErrorContains(t, reward.TokenEstimator{Center: "none", Gaps: true}.Validate(), "Gaps")
}
