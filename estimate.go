package turnpack

import (
	"fmt"
	"math"

	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// ask returns the reward of a rollout in the first pass.
func (x *run) ask(r *rollout.Rollout) rollout.Reward {
	if x.Reward == nil {
		return reward.Score(r, x.scale())
	}
	if why := reward.Infrastructure(r); why != "" && !x.Scale.InfraUnresolved {
		return rollout.Reward{Verdict: r.Outcome.Verdict, Reason: r.Outcome.Reason, Excluded: why}
	}
	got := x.Reward(r)
	for _, v := range []float64{got.Total, got.Outcome} {
		if got.Excluded == "" && !(math.Abs(v) <= math.MaxFloat32) {
			got.Excluded = fmt.Sprintf("%s: the function gave %g", reward.ExcludedBadReward, v)
		}
	}
	if got.Excluded != "" { // its rows may still be written
		got.Total, got.Outcome = 0, 0
	}
	return got
}

// scoreOf returns the reward of r as the first pass found it, and the rules that shaped it.
func (x *run) scoreOf(r *rollout.Rollout, at rolloutAt) (got rollout.Reward, applied []shaped.Applied) {
	if x.Reward == nil {
		got = reward.Score(r, x.scale())
	} else {
		got = x.scored[at.group][at.index]
	}
	got, applied = x.shaper.shape(r, got, x.sizes)
	if x.shaper.spent != nil && got.Excluded == "" {
		if spent := x.shaper.spent[at.group][at.index]; spent != got.Total {
			applied = append(applied, shaped.Applied{Rule: shaped.RuleSpending, By: spent - got.Total})
			got.Total = spent // as it is in the statistics, to the last bit
		}
	}
	return got, applied
}

// excludes returns why a rollout is left out of the statistics, "" if it is not.
func (x *run) excludes(r reward.RolloutReward) string {
	if e, ours := x.record(); ours {
		return e.Excludes(r)
	}
	return r.Excluded
}

// estimate computes what advantageOf and partsOf read, from the rewards of the first pass.
func (x *run) estimate(rewards []reward.GroupRewards) error {
	if x.Tokens != nil && !x.NoAdvantages {
		x.report.Reward = reward.ReportOf(rewards, nil)
		return x.tokens.Finish(*x.Tokens, rewards, func(id string) []reward.TokenRow {
			at, _ := x.seen.Of(id)
			rows := x.sizes.Of[id].Tokens
			if known := rewards[at.group].Rollouts[at.index]; known.MaskedRows == known.Rows || x.shaper.leftOut(at) != "" {
				return make([]reward.TokenRow, len(rows))
			}
			return rows
		})
	}
	if e, ok := x.record(); ok && x.stepwise() {
		x.report.Reward = reward.ReportOf(rewards, nil)
		return x.steps.Finish(e, func(group, index int) string { return rewards[group].Rollouts[index].Excluded })
	} else if ok {
		var err error
		if x.stats, err = e.Statistics(rewards); err != nil {
			return err
		}
		x.report.Reward = x.stats.Report()
		return nil
	}
	if x.NoAdvantages {
		x.report.Reward = reward.ReportOf(rewards, nil)
		return nil
	}
	got, err := x.Estimator.Advantages(rewards)
	if err != nil {
		return err
	}
	if len(got) != len(rewards) {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Pipeline.Estimator"}, "the estimator gave advantages for %d groups, expected %d", len(got), len(rewards))
	}
	for i, g := range rewards {
		if len(got[i]) != len(g.Rollouts) {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Pipeline.Estimator"}, "the estimator gave %d advantages for group %q, expected %d", len(got[i]), g.Key, len(g.Rollouts))
		}
		for j, a := range got[i] {
			if a.Dropped == "" && !(math.Abs(a.Value) <= math.MaxFloat32) {
				return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: g.Rollouts[j].ID, Field: "Pipeline.Estimator"}, "the estimator gave the advantage %g in group %q, expected a finite number", a.Value, g.Key)
			}
		}
	}
	x.advantages, x.report.Reward = got, reward.ReportOf(rewards, got)
	return nil
}

// stepwise reports whether the estimator compares agent steps.
func (p *Pipeline) stepwise() bool {
	e, ok := p.record()
	return ok && e.Unit == "step" && !p.NoAdvantages
}

// partsOf returns credit, which gives the tokens of a row the advantages of their agent steps or
// their own and returns how many tokens have none. credit is nil if the estimator gives one
// advantage per rollout. without says why r has no advantage, "" if it has one.
func (x *run) partsOf(r *rollout.Rollout) (credit func(rollout.Sequence) (rollout.Sequence, int, error), without string) {
	switch {
	case x.Tokens != nil:
		return func(seq rollout.Sequence) (rollout.Sequence, int, error) {
			seq, err := x.tokens.Credit(seq)
			return seq, 0, err
		}, x.tokens.Of(r.ID)
	case x.stepwise():
		steps, without := x.steps.Of(r.ID)
		return func(seq rollout.Sequence) (rollout.Sequence, int, error) { return reward.CreditSteps(seq, r, steps) }, without
	}
	return nil, ""
}

// scale returns the outcome policy of rewards. If steps are compared, step scores count in the
// values of steps and not in the outcome.
func (p *Pipeline) scale() reward.OutcomePolicy {
	s := p.Scale
	if p.stepwise() {
		s.StepCoef = 0
	}
	return s
}

// advantageOf returns the advantage of a rollout seen in the first pass.
func (x *run) advantageOf(key string, known reward.RolloutReward, at rolloutAt) (reward.Advantage, error) {
	if x.stats != nil {
		return x.stats.Advantage(key, known)
	}
	return x.advantages[at.group][at.index], nil
}

// rowAdvantage returns the advantage that all trained tokens of a row share, or the rollout's if
// they differ.
func (x *run) rowAdvantage(seq *rollout.Sequence, advantage float64, flags map[int]reward.MessageFlags) float64 {
	message := int32(-2)
	for i, w := range seq.Weight {
		switch {
		case w <= 0 || seq.Source[i] == message:
		case message == -2:
			message = seq.Source[i]
		case flags[int(message)] != flags[int(seq.Source[i])]:
			return advantage
		}
	}
	return x.overrides().MessageAdvantage(advantage, flags[int(message)])
}
