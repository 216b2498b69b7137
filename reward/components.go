package reward

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// ComponentGroup holds several rewards per rollout, indexed Rewards[rollout][component]; nil means
// that the reward function returned none.
type ComponentGroup struct {
	Key     string
	Rewards [][]*float64
}

// NormalizeThenSum returns the advantages of rewards with several components: it estimates each
// component separately with e, sums the results with the weights, and turns the sum into a batch
// z-score with e's epsilon (TRL's normalize_then_sum, 1.16.0). A nil component adds nothing; a rollout
// whose components are all nil leaves the statistics and gets 0.
func NormalizeThenSum(groups []ComponentGroup, weights []float64, e Estimator) ([][]Advantage, error) {
	sums := make([]GroupRewards, len(groups))
	for i, g := range groups {
		sums[i] = GroupRewards{Key: g.Key, Rollouts: make([]RolloutReward, len(g.Rewards))}
		for j, c := range g.Rewards {
			if len(c) != len(weights) {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "rollout %d of group %q has %d rewards for %d weights", j, g.Key, len(c), len(weights))
			}
			if !slices.ContainsFunc(c, func(x *float64) bool { return x != nil }) {
				sums[i].Rollouts[j].Excluded = ExcludedNoReward
			}
		}
	}
	e.Population = populationZero
	for k, w := range weights {
		one := make([]GroupRewards, len(groups))
		for i, g := range groups {
			one[i] = GroupRewards{Key: g.Key, Rollouts: make([]RolloutReward, len(g.Rewards))}
			for j, c := range g.Rewards {
				if c[k] == nil {
					one[i].Rollouts[j].Excluded = ExcludedNoReward
				} else {
					one[i].Rollouts[j].Reward = *c[k]
				}
			}
		}
		advantages, _, err := Advantages(one, e)
		if err != nil {
			return nil, err
		}
		for i := range advantages {
			for j, a := range advantages[i] {
				sums[i].Rollouts[j].Reward += w * a.Value
			}
		}
	}
	out, _, err := Advantages(sums, Estimator{
		Grouping: groupWholeBatch, Population: populationZero, Epsilon: e.Epsilon, Place: e.Place, Constant: constantAsIs, Clip: e.Clip,
	})
	return out, err
}
