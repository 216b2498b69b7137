package reward

import (
	"cmp"
	"math"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// TokenEstimator computes a separate advantage for every trained token: the return, discounted back
// from the rollout's reward on its last trained token, minus a baseline, whitened over all trained
// tokens of the batch. The zero value is REINFORCE++ with the group mean as baseline.
type TokenEstimator struct {
	Name string // preset name, "" for a custom record
	// Center selects what is subtracted from the reward before it becomes a return: "", the group
	// mean; "none", nothing; "baseline", the Baseline of each rollout.
	Center Choice
	// Discount is the factor per trained token, 0 = 1. It applies with the centre "none" only.
	Discount float64
	// ResetAtMask sets the running return to 0 at tokens that are not trained, so that no return
	// passes back over tool output.
	ResetAtMask bool
	// Gaps applies the discount at untrained tokens between trained ones too; valid only where Whiten
	// is off.
	Gaps bool
	// SingletonZero gives a group of one rollout the centred reward 0; otherwise it keeps its reward.
	SingletonZero bool
	Whiten        Whiten
}

// Whiten defines how returns are whitened into advantages.
type Whiten struct {
	Off          bool
	Population   bool    // σ₀ instead of σ₁
	Epsilon      float64 // 0 = 1e-8
	Floor        bool    // √max(σ², ε) instead of √(σ² + ε)
	CountEpsilon float64 // added to the count of tokens in mean and variance
}

// TokenRollout holds the reward of one rollout and the mask of its response.
type TokenRollout struct {
	ID       string
	Reward   float64
	Baseline float64
	Mask     []bool // true = trained
}

// TokenGroup holds the rollouts of one group.
type TokenGroup struct {
	Key      string
	Rollouts []TokenRollout
}

// TokenPresets lists the token estimators of trainers, named as in Presets.
func TokenPresets() []TokenEstimator {
	verl := Whiten{CountEpsilon: 1e-8}
	nemo := Whiten{Population: true, Floor: true}
	return []TokenEstimator{
		{Name: "verl_reinforce_pp@" + verlRevision, Center: centerNone, Whiten: verl},
		{Name: "verl_reinforce_pp_baseline@" + verlRevision, Center: centerMean, Whiten: verl},
		{Name: "slime_reinforce_pp@" + slimeRevision, Center: centerNone, Gaps: true, Whiten: Whiten{Off: true}},
		{Name: "verl_remax@" + verlRevision, Center: centerBaseline, Whiten: Whiten{Off: true}},
		{Name: "skyrl_reinforce_pp@" + skyrlRevision, Center: centerNone, ResetAtMask: true},
		{Name: "nemo_reinforce_pp@" + nemoRevision, Center: centerNone, Whiten: nemo},
		{Name: "nemo_reinforce_pp_baseline@" + nemoRevision, Center: centerMean, SingletonZero: true, Whiten: nemo},
	}
}

// TokenPreset returns the token estimator of that name, given with or without its revision.
func TokenPreset(name string) (TokenEstimator, bool) {
	for _, e := range TokenPresets() {
		if sameName(e.Name, name) {
			return e, true
		}
	}
	return TokenEstimator{}, false
}

// Validate reports every fault of e at once.
func (e TokenEstimator) Validate() error {
	var f faults.List
	if e.Center != centerNone && e.Center != centerMean && e.Center != centerBaseline {
		f.Add("Center", "found %q, which is not defined for tokens, expected none, baseline or \"\", the group mean", e.Center)
	}
	if e.Discount != 0 && !(e.Discount > 0 && e.Discount <= 1) {
		f.Add("Discount", "%g is not in (0, 1]", e.Discount)
	}
	if e.Discount != 0 && e.Discount != 1 && e.Center != centerNone {
		f.Add("Discount", "%g with the centre %s, which makes a return without discount", e.Discount, e.Center)
	}
	if e.Gaps && !e.Whiten.Off {
		f.Add("Gaps", "set with Whiten, which counts trained tokens")
	}
	f.Amount("Whiten.Epsilon", e.Whiten.Epsilon)
	f.Amount("Whiten.CountEpsilon", e.Whiten.CountEpsilon)
	return f.Err()
}

// TokenAdvantages returns one advantage per token of every mask, 0 where the mask is false. Rewards
// that are not finite are errors of KindInput.
func TokenAdvantages(groups []TokenGroup, e TokenEstimator) ([][][]float64, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	rewards := make([]GroupRewards, len(groups))
	for i, g := range groups {
		rewards[i].Key = g.Key
		for _, r := range g.Rollouts {
			rewards[i].Rollouts = append(rewards[i].Rollouts, RolloutReward{ID: r.ID, Reward: r.Reward, Baseline: r.Baseline})
		}
	}
	b, values, err := e.compare(rewards, func(group, rollout int) []TokenRow {
		return []TokenRow{tokenRow(groups[group].Rollouts[rollout].Mask)}
	})
	if err != nil {
		return nil, err
	}
	out := make([][][]float64, len(groups))
	for i, g := range groups {
		out[i] = make([][]float64, len(g.Rollouts))
		for j, r := range g.Rollouts {
			out[i][j] = b.advantages(r.Mask, values[i][j])
		}
	}
	return out, nil
}

// TokenRow holds the counts of a row that a token estimator needs: its trained tokens, and those of
// them after the last gap of untrained tokens. A row without trained tokens, left out by a mask,
// counts in the mean of its group and in nothing else.
type TokenRow struct{ Trained, Tail int }

func tokenRow(mask []bool) (row TokenRow) {
	for t, on := range mask {
		if !on {
			continue
		}
		if t == 0 || !mask[t-1] {
			row.Tail = 0
		}
		row.Trained++
		row.Tail++
	}
	return row
}

// tokenBatch is an estimator with the mean and the deviation of all returns of a batch.
type tokenBatch struct {
	TokenEstimator
	mean, sd float64
}

// compare returns the centred rewards (0 for excluded rollouts), and the estimator with the mean and
// deviation for whitening over all rows.
func (e TokenEstimator) compare(groups []GroupRewards, rows func(group, rollout int) []TokenRow) (tokenBatch, [][]float64, error) {
	b, values := tokenBatch{e, 0, 1}, make([][]float64, len(groups))
	means := map[string]*stats.Moments{}
	for i, g := range groups {
		m := means[g.Key]
		if m == nil {
			m = new(stats.Moments)
			means[g.Key] = m
		}
		for j, r := range g.Rollouts {
			if r.Excluded != "" {
				continue
			}
			if err := checkReward(g.Key, r); err != nil {
				return b, nil, err
			}
			m.Add(r.Reward, len(rows(i, j)))
		}
	}
	for _, m := range means {
		m.Freeze()
	}
	for i, g := range groups {
		values[i] = make([]float64, len(g.Rollouts))
		for j, r := range g.Rollouts {
			if r.Excluded == "" {
				values[i][j] = e.centered(r, means[g.Key])
			}
		}
	}
	if e.Whiten.Off {
		return b, values, nil
	}
	var err error
	b.mean, b.sd, err = e.Whiten.moments(func(visit func(v float64, times int)) {
		for i, g := range groups {
			for j, r := range g.Rollouts {
				if r.Excluded != "" {
					continue
				}
				for _, row := range rows(i, j) {
					e.eachReturn(row, values[i][j], visit)
				}
			}
		}
	})
	return b, values, err
}

// advantages returns the advantages of a row's tokens, given the centred reward of its rollout.
func (b *tokenBatch) advantages(mask []bool, value float64) []float64 {
	out := b.discountedReturns(mask, value)
	for t, on := range mask {
		if on {
			out[t] = (out[t] - b.mean) / b.sd
		}
	}
	return out
}

func (e *TokenEstimator) centered(r RolloutReward, m *stats.Moments) float64 {
	switch {
	case e.Center == centerBaseline:
		return r.Reward - r.Baseline
	case e.Center == centerMean && (m.N > 1 || e.SingletonZero):
		return m.Deviation(r.Reward)
	}
	return r.Reward
}

// discountedReturns computes the discounted return of each token of a row, 0 where the mask is false.
func (e *TokenEstimator) discountedReturns(mask []bool, value float64) []float64 {
	out := make([]float64, len(mask))
	discount := cmp.Or(e.Discount, 1)
	running, paid := 0.0, false
	for t := len(out) - 1; t >= 0; t-- {
		switch {
		case !mask[t] && e.ResetAtMask:
			running = 0
		case mask[t] && !paid:
			running, paid = value, true
			out[t] = running
		case !mask[t] && e.Gaps:
			running *= discount
		case mask[t]:
			running *= discount
			out[t] = running
		}
	}
	return out
}

// eachReturn calls visit with the returns of a row's trained tokens, grouping equal ones.
func (e *TokenEstimator) eachReturn(row TokenRow, value float64, visit func(v float64, times int)) {
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

// Discounts reports whether adjacent trained tokens have different advantages.
func (e TokenEstimator) Discounts() bool { return e.Discount != 0 && e.Discount != 1 }

// moments returns the mean and deviation of all returns. It calls each twice.
func (w Whiten) moments(each func(visit func(v float64, times int))) (mean, sd float64, err error) {
	var sum stats.Sum
	n := 0
	each(func(v float64, times int) { sum.AddProduct(v, float64(times)); n += times })
	if n == 0 {
		return 0, 1, nil
	}
	if n == 1 && !w.Population {
		return 0, 0, rollout.Errorf(rollout.KindInput, rollout.Where{},
			"the batch has one trained token, and the deviation with n - 1 of one value does not exist").
			WithFix("whiten a larger batch")
	}
	count := float64(n) + w.CountEpsilon
	mean = sum.Round() / count
	var square stats.Sum
	each(func(v float64, times int) {
		d := v - mean
		for range times {
			square.AddProduct(d, d)
		}
	})
	variance := square.Round() / count
	if !w.Population {
		variance *= float64(n) / float64(n-1)
	}
	eps := cmp.Or(w.Epsilon, 1e-8)
	if w.Floor {
		return mean, math.Sqrt(math.Max(variance, eps)), nil
	}
	return mean, math.Sqrt(variance + eps), nil
}
