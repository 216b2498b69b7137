package reward

import (
	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// TokenRow is what a token estimator asks of a row: how many of its tokens are trained, and
// how many of those come after the last gap between them. A row without any, which a mask
// left out, counts in the mean of its group and in nothing else.
type TokenRow struct{ Trained, Tail int }

// TokenTable is TokenAdvantages for a job in two passes: Finish takes the rewards and the
// lengths of all rows, Credit gives each row its own values. Every row of a rollout is one
// response with the rollout's reward, as the trainers have it. The zero value is empty.
// After Finish it is safe for concurrent use.
type TokenTable struct {
	estimator TokenEstimator
	values    map[string]float64 // centred rewards by rollout
	out       map[string]string  // why a rollout has none
	white     whitening
}

// Finish takes the rewards of a batch and the rows of each rollout.
func (t *TokenTable) Finish(e TokenEstimator, groups []GroupRewards, rows func(rollout string) []TokenRow) error {
	if err := e.streams(); err != nil {
		return err
	}
	*t = TokenTable{estimator: e, values: map[string]float64{}, out: map[string]string{}}
	for _, g := range groups {
		var mean stats.Moments
		for _, r := range g.Rollouts {
			if r.Excluded != "" {
				t.out[r.ID] = DroppedExcluded + ": " + r.Excluded
				continue
			}
			if err := checkReward(g.Key, r); err != nil {
				return err
			}
			mean.Add(r.Reward, len(rows(r.ID)))
		}
		mean.Freeze()
		for _, r := range g.Rollouts {
			if r.Excluded == "" {
				t.values[r.ID] = e.centered(TokenRollout{Reward: r.Reward}, &mean)
			}
		}
	}
	if e.Whiten.Off {
		return nil
	}
	var err error
	t.white, err = e.Whiten.over(func(visit func(v float64, times int)) {
		for _, g := range groups {
			for _, r := range g.Rollouts {
				if v, in := t.values[r.ID]; in {
					for _, row := range rows(r.ID) {
						e.each(row, v, visit)
					}
				}
			}
		}
	})
	return err
}

// Of says why a rollout has no advantage, "" if it has.
func (t *TokenTable) Of(rollout string) (without string) {
	if _, in := t.values[rollout]; in {
		return ""
	}
	if why := t.out[rollout]; why != "" {
		return why
	}
	return DroppedExcluded
}

// Credit sets the credit of a row of a rollout that has advantages.
func (t *TokenTable) Credit(seq rollout.Sequence) (rollout.Sequence, error) {
	mask := make([]bool, len(seq.Weight))
	for i, w := range seq.Weight {
		mask[i] = w > 0
	}
	values := t.estimator.returns(TokenRollout{Mask: mask}, t.values[seq.Rollout])
	for i := range values {
		if mask[i] && !t.estimator.Whiten.Off {
			values[i] = t.white.of(values[i])
		}
	}
	return creditTokens(seq, values)
}

// Discounts says whether trained tokens that stand together have advantages of their own.
func (e TokenEstimator) Discounts() bool { return e.Discount != 0 && e.Discount != 1 }

// streams is Validate, and refuses what a table cannot give.
func (e TokenEstimator) streams() error {
	if err := e.Validate(); err != nil {
		return err
	}
	if e.Center == centerBaseline {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Estimator"},
			"%s needs the reward of a greedy rollout for each prompt, which rollouts do not record", e.Name).
			WithFix("call reward.TokenAdvantages with the baselines, or choose another estimator")
	}
	return nil
}

// each visits the returns of a row's trained tokens, equal ones together.
func (e *TokenEstimator) each(row TokenRow, value float64, visit func(v float64, times int)) {
	paid := row.Trained
	if e.ResetAtMask {
		paid = row.Tail
		visit(0, row.Trained-row.Tail)
	}
	if !e.Discounts() {
		visit(value, paid)
		return
	}
	for range paid {
		visit(value, 1)
		value *= e.Discount
	}
}
