package turnpack

import (
	"slices"

	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/internal/tally"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// masking returns p with the masking of Shaping added to its Mask.
func (p Pipeline) masking() Pipeline {
	if p.Shaping.MaskTruncated && !slices.Contains(p.Mask.MaskStatus, rollout.StatusTruncated) {
		masked := p.Mask.MaskStatus
		if masked == nil {
			masked = []rollout.Status{rollout.StatusAborted, rollout.StatusFailed}
		}
		p.Mask.MaskStatus = append(slices.Clip(masked), rollout.StatusTruncated)
	}
	return p
}

// counts reports whether the rows are made once beforehand, to count them.
func (p *Pipeline) counts() bool {
	return shaped.Rules(p.Shaping).CountsTokens() || !p.NoAdvantages && p.countsRows()
}

// shaper applies the shaping rules of a run.
type shaper struct {
	rules shaped.Rules
	mask  lossmask.Policy
	train func(*rollout.Sequence) ([]float32, error) // Pipeline.TrainLogprobs
	fates [][]shaped.Fate                            // by group and index, nil = nothing was decided
	spent [][]float64                                // rewards after Rules.Spending, by group and index
}

// shape changes the reward of a scored rollout and returns the rules that did.
func (s *shaper) shape(r *rollout.Rollout, got rollout.Reward, lengths *sizes) (rollout.Reward, []shaped.Applied) {
	if got.Excluded != "" || !s.rules.Shapes() {
		return got, nil
	}
	f := shaped.FactsOf(r)
	if lengths != nil {
		if f.Length = lengths.Of[r.ID].Trained; s.rules.ResponseLength {
			f.Length = lengths.Of[r.ID].Response
		}
	}
	var applied []shaped.Applied
	got.Total, applied = s.rules.Shape(got.Total, f)
	return got, applied
}

// masked returns why no row of r trains, "" if a row may train.
func (s *shaper) masked(r *rollout.Rollout) string {
	if why := s.mask.RowReason(0, r.Status); why != "" {
		return why
	}
	return s.rules.Masks(shaped.FactsOf(r))
}

// decide leaves out the groups and rollouts that the rules exclude, before advantages are computed.
// members has the shape of rewards.
func (s *shaper) decide(rewards []reward.GroupRewards, members [][]shaped.Member, report *Report) error {
	if !s.rules.Decides() {
		return nil
	}
	groups := make([]shaped.Group, len(members))
	for i := range members {
		groups[i] = shaped.Group{Key: rewards[i].Key, Members: slices.Clone(members[i])}
		for j := range members[i] { // mixed may have excluded some
			groups[i].Members[j].Excluded = rewards[i].Rollouts[j].Excluded
		}
	}
	var err error
	if s.fates, err = s.rules.Decide(groups, &report.Shaping); err != nil {
		return err
	}
	if s.rules.Spending != nil {
		s.spent = make([][]float64, len(groups))
	}
	for i := range s.fates {
		for j, f := range s.fates[i] {
			if s.spent != nil {
				rewards[i].Rollouts[j].Reward = groups[i].Members[j].Reward
				s.spent[i] = append(s.spent[i], groups[i].Members[j].Reward)
			}
			if r := &rewards[i].Rollouts[j]; f.Out != "" && !f.Counts {
				report.leftStatistics(Skip{Rollout: r.ID, Reason: f.Out})
				r.Excluded = f.Out
			}
		}
	}
	return nil
}

// leftOut returns why the rules leave a rollout out, "" if they do not.
func (s *shaper) leftOut(at rolloutAt) string {
	if s.fates == nil {
		return ""
	}
	return s.fates[at.group][at.index].Out
}

// row returns the reason for which a row is masked, or bounds how far the policy being trained may
// be from the policy that sampled the row. unknown is incremented if the row has no log
// probabilities under the former.
func (s *shaper) row(r *rollout.Rollout, row *rollout.Sample, unknown *int) (reason string, err error) {
	if why := s.rules.Masks(shaped.FactsOf(r)); why != "" || s.rules.OffPolicy == nil {
		return why, nil
	}
	var train []float32
	if s.train == nil {
		if train = shaped.Recorded(r, &row.Sequence); train == nil {
			*unknown++
			return "", nil
		}
	} else if train, err = s.train(&row.Sequence); err != nil {
		return "", err
	}
	row.Sequence, reason, err = shaped.Bound(*s.rules.OffPolicy, row.Sequence, train)
	return reason, err
}

// describer collects what a report says of a batch as a whole.
type describer struct {
	batch tally.Tally
	votes prm.Tally
}

// add counts a rollout whose rows are made.
func (d *describer) add(res *result) {
	o := res.Seen
	o.Rows, o.Tokens, o.Trained = res.Rows, res.Tokens, res.Trained
	d.batch.Add(o)
	d.votes.Add(res.Votes)
}

// into sets the fields of report that describe the batch.
func (d *describer) into(report *Report) {
	report.Overview = d.batch.Batch()
	if judged := d.votes.Agreement(); judged != (prm.Agreement{}) {
		report.Judge = &judged
	}
}
