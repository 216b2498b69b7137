package turnpack

import (
	"context"

	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// excludedNoRow is the reason for a rollout being left out of the statistics of an estimator that
// counts rows.
const excludedNoRow = "no row to train"

// size holds the totals of one rollout's rows.
type size struct {
	Rows, Masked, Trained int
	All                   int // tokens of all rows
	Response              int // the longest row's length from its first trained token on
	// Tokens are the rows as a token estimator sees them; nil if there is none.
	Tokens []reward.TokenRow `json:",omitempty"`
}

// sizes holds, by id, the sizes of rollouts that have rows, before the loss mask leaves out whole
// rows. It is the Sink of a run that only counts.
type sizes struct {
	mask lossmask.Policy
	// tokens says that a token estimator is used.
	tokens bool
	Of     map[string]size
	Why    map[string]string // why there is no row, for the first 10,000 rollouts
}

// Write counts a row.
func (s *sizes) Write(row rollout.Sample) error { return s.add(&spool.Row{Sample: row}) }

// WriteRuns counts a row given as runs.
func (s *sizes) WriteRuns(row rollout.Sample, lens []int32, ids []rollout.TokenID, _ []float32) error {
	return s.add(&spool.Row{Sample: row, Lens: lens, Tokens: ids})
}

func (s *sizes) add(row *spool.Row) error {
	n := s.Of[row.Rollout]
	n.Rows++
	n.Trained += row.Trained()
	n.All += row.Len()
	first := -1
	row.Each(func(i, at, _ int) {
		if first < 0 && row.Weight[i] > 0 {
			first = at
		}
	})
	if first >= 0 {
		n.Response = max(n.Response, row.Len()-first)
	}
	masked := s.mask.RowReason(row.Len(), row.Status) != ""
	if masked {
		n.Masked++
	}
	if s.tokens {
		var one reward.TokenRow
		if !masked {
			one = reward.TokenRow{Trained: row.Trained(), Tail: row.Tail()}
		}
		n.Tokens = append(n.Tokens, one)
	}
	s.Of[row.Rollout] = n
	return nil
}

// measure makes the rows once before the first pass, if the estimator or the shaping counts rows or
// tokens.
func (x *run) measure(ctx context.Context, src Source) error {
	if !x.counts() {
		return nil
	}
	x.sizes = &sizes{mask: x.Mask, tokens: x.Tokens != nil, Of: map[string]size{}, Why: map[string]string{}}
	counting := *x.Pipeline
	counting.NoAdvantages, counting.Reward, counting.Estimator, counting.Tokens, counting.Shaping = true, nil, nil, nil, shaping.Rules{}
	counting.Mask.MaxTokens, counting.Mask.MaskStatus = 0, []rollout.Status{}
	// With one group no row waits for another.
	counting.GroupBy = func(*rollout.Rollout) string { return "all" }
	report, err := counting.Run(ctx, src, x.sizes)
	if err != nil {
		*x.report = report
	}
	for _, without := range report.WithoutRowsAt {
		x.sizes.Why[without.Rollout] = without.Reason
	}
	return err
}

// rolloutReward returns what the estimator is told of a scored rollout.
func (x *run) rolloutReward(r *rollout.Rollout, got rollout.Reward) reward.RolloutReward {
	out := reward.Of(r, got)
	if out.Excluded == "" && unsampled(r) {
		out.Excluded = excludedUnsampled
	}
	if x.sizes == nil || !x.countsRows() {
		return out
	}
	n := x.sizes.Of[r.ID]
	if (*shaped.Rules)(&x.Shaping).Masks(shaped.FactsOf(r)) != "" {
		n.Masked = n.Rows
	}
	out.Rows, out.MaskedRows, out.Length = n.Rows, n.Masked, n.Trained
	if n.Rows == 0 && out.Excluded == "" {
		out.Excluded = excludedNoRow
		if why := x.sizes.Why[r.ID]; why != "" {
			out.Excluded += ": " + why
		}
	}
	return out
}

// excludedUnsampled is the reason for a rollout that ended before its first reply being in no
// statistics.
const excludedUnsampled = "nothing was sampled"

// unsampled reports that the policy wrote nothing. Replies whose author is unknown may be the
// policy's.
func unsampled(r *rollout.Rollout) bool {
	for _, t := range r.Turns {
		if t.Message >= 0 && t.Output == nil || len(t.Output) > 0 {
			return false
		}
	}
	for i := range r.Messages {
		if m := &r.Messages[i]; r.Turns == nil && m.Role == rollout.RoleAssistant && m.Sampled <= rollout.SampledByPolicy {
			return false
		}
	}
	return true
}

// rowless reports that a rollout has no row to train, whatever its advantage. Such a rollout is
// encoded all the same, to find out why.
func (x *run) rowless(id string) bool {
	if x.sizes == nil || !x.countsRows() {
		return false
	}
	n := x.sizes.Of[id]
	return n.Rows == n.Masked
}
