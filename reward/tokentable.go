package reward

import "github.com/turnpack/turnpack/rollout"

// TokenTable computes the values of TokenAdvantages in two passes: Finish takes the rewards and the
// lengths of all rows, Credit sets the values of one row. As in the trainers, every row of a rollout
// is one response with the rollout's reward. The zero value is empty. It is safe for concurrent use
// after Finish.
type TokenTable struct {
	batch             tokenBatch
	values            map[string]float64 // centred rewards by rollout
	withoutAdvantages map[string]string  // the reason for having no advantages, by rollout
}

// Finish replaces the table's contents by the values for a batch: its rewards, and the rows of each
// rollout.
func (t *TokenTable) Finish(e TokenEstimator, groups []GroupRewards, rows func(rollout string) []TokenRow) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if e.Center == centerBaseline {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Estimator"},
			"%s needs the reward of a greedy rollout for each prompt, which rollouts do not record", e.Name).
			WithFix("call reward.TokenAdvantages with the baselines, or choose another estimator")
	}
	b, values, err := e.compare(groups, func(group, rollout int) []TokenRow { return rows(groups[group].Rollouts[rollout].ID) })
	if err != nil {
		return err
	}
	*t = TokenTable{batch: b, values: map[string]float64{}, withoutAdvantages: map[string]string{}}
	for i, g := range groups {
		for j, r := range g.Rollouts {
			if r.Excluded != "" {
				t.withoutAdvantages[r.ID] = DroppedExcluded + ": " + r.Excluded
			} else {
				t.values[r.ID] = values[i][j]
			}
		}
	}
	return nil
}

// Of returns the reason why a rollout has no advantage, "" if it has one.
func (t *TokenTable) Of(rollout string) (without string) {
	if _, in := t.values[rollout]; in {
		return ""
	}
	if why := t.withoutAdvantages[rollout]; why != "" {
		return why
	}
	return DroppedExcluded
}

// Credit returns seq with its Credit column set; its rollout must have advantages (see Of).
func (t *TokenTable) Credit(seq rollout.Sequence) (rollout.Sequence, error) {
	mask := make([]bool, len(seq.Weight))
	for i, w := range seq.Weight {
		mask[i] = w > 0
	}
	values := t.batch.advantages(mask, t.values[seq.Rollout])
	return credit(seq, func(token int) float64 { return values[token] })
}
