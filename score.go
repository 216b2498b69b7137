package turnpack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/turnpack/turnpack/internal/kept"
	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/internal/roster"
	"github.com/turnpack/turnpack/internal/rowsteps"
	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/chat"
)

// run is the state of one Run.
type run struct {
	*Pipeline
	enc    *tokenize.Encoder
	report *Report
	keeper Keeper // nil = none

	keys    keys.Keys             // of groups, in order of first appearance
	groups  []groupPlan           // by index in keys
	mixedBy map[int]error         // why a group is left out, by its index
	seen    keys.Table[rolloutAt] // group and index of each rollout
	sizes   *sizes                // for estimators that count rows or tokens, else nil
	// Results of the first pass by group and index: rewards of Pipeline.Reward, and advantages of
	// an estimator that is the user's own. Those of package reward are computed again in the second
	// pass from stats.
	scored     [][]rollout.Reward
	advantages [][]reward.Advantage
	stats      *reward.Statistics
	shaper     shaper
	describer  describer
	before     *gathered // results of an earlier run, nil = none
	lean       []byte    // scratch: the encoded record of a rollout
	spools     *spools
	steps      rowsteps.Table    // for estimators that compare steps
	tokens     reward.TokenTable // for token estimators
	failed     int               // rollouts that could not be encoded
	again      kept.Rollouts     // for the second pass
	// Whether a column is written; a file has it for all rows or for none.
	logprobs, versions bool
}

// rolloutAt locates a rollout: its group and its index in the group.
type rolloutAt struct{ group, index int32 }

// groupPlan is what the first pass learnt about a group.
type groupPlan struct {
	count int // rollouts to expect in the second pass
	// Whether rewards of the scale auto came from verdicts, from numbers, or both.
	ByVerdict, ByNumber bool
}

// score is the first pass: rewards, group sizes and what advantages need. A run that resumes takes
// them from the earlier run.
func (x *run) score(ctx context.Context, src Source) error {
	got := x.gatheredBefore()
	if got == nil {
		got = &gathered{}
		if err := x.measure(ctx, src); err != nil {
			return err
		}
		if err := x.gather(ctx, src, got); err != nil {
			return err
		}
		if err := x.keepGathered(src, got); err != nil {
			return err
		}
	}
	return x.conclude(got)
}

// gather reads all records of src.
func (x *run) gather(ctx context.Context, src Source, into *gathered) error {
	x.again.Limit = x.againLimit
	for r, err := range src.Rollouts(ctx) {
		if err := ctx.Err(); err != nil {
			return err
		}
		x.report.Read++
		if err == nil {
			err = x.checkRecord(r)
		}
		if err != nil {
			if err := x.skipOrFail(r, err); err != nil {
				return err
			}
			continue
		}
		x.again.Add(r)
		r = x.withStatus(r)
		key := x.group(r)
		at, added := x.keys.Add(key)
		if added {
			x.groups = append(x.groups, groupPlan{})
			if x.Reward != nil {
				x.scored = append(x.scored, nil)
			}
			if shaped.Rules(x.Shaping).Decides() {
				into.Members = append(into.Members, nil)
			}
		}
		x.seen.Add(r.ID, rolloutAt{int32(at), int32(x.groups[at].count)})
		x.groups[at].count++
		got := x.ask(r)
		if x.Reward != nil {
			x.scored[at] = append(x.scored[at], got)
		}
		raw := got.Total
		got, applied := x.shaper.shape(r, got, x.sizes)
		shaped.Count(&x.report.Shaping, applied)
		if x.stepwise() {
			values := reward.StepsOf(r, got.Total, x.Scale.StepCoef)
			if got.Excluded == "" && len(values) == 0 {
				got.Excluded = reward.ExcludedNoSteps
			}
			x.steps.Add(at, key, reward.RolloutSteps{ID: r.ID, Steps: values})
		}
		if x.mayTrain(r, got) {
			x.cover(r, &into.Logprobs, &into.Versions)
		}
		if got.Excluded == "" {
			// An infrastructure failure that Scale.InfraUnresolved counts does so as a verdict.
			number := reward.OnlyScalar(got.Verdict) && reward.Infrastructure(r) == ""
			x.groups[at].ByNumber = x.groups[at].ByNumber || number
			x.groups[at].ByVerdict = x.groups[at].ByVerdict || !number
		}
		known := x.rolloutReward(r, got)
		if why := x.excludes(known); why != "" {
			x.report.leftStatistics(skipOf(r, nil, why))
		}
		if shaped.Rules(x.Shaping).Decides() {
			m := shaped.MemberOf(r, got, raw, x.shaper.masked(r), x.PolicyVersion)
			if x.Shaping.Spending != nil {
				n := x.sizes.Of[r.ID]
				m.Usage = shaped.Usage{OutputTokens: n.Trained, TotalTokens: n.All, Turns: len(rollout.TurnsOf(r))}
			}
			into.Members[at] = append(into.Members[at], m)
		}
		into.Order.Add(at, r.Origin, known)
		x.progress(Progress{Pass: 1, Done: x.report.Read})
	}
	return nil
}

// conclude derives from all rewards what the second pass needs.
func (x *run) conclude(from *gathered) error {
	rewards := from.Order.Rewards(&x.keys)
	if x.before == nil {
		from.Order = roster.Roster{} // a million rollouts take seventy megabytes
	}
	x.logprobs, x.versions = from.Logprobs.written(), from.Versions.written()
	x.report.DroppedLogprobs, x.report.DroppedVersions = from.Logprobs.orNil(), from.Versions.orNil()
	x.report.Groups = len(x.groups)
	x.report.Rollouts = x.seen.Len()
	if x.report.Read == 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the source holds no rollout").WithFix("check the input path and the format")
	}
	if x.report.Rollouts == 0 {
		return x.noUsableRecord()
	}
	if err := x.mixed(rewards); err != nil {
		return err
	}
	if err := x.shaper.decide(rewards, from.Members, x.report); err != nil {
		return err
	}
	if err := x.estimate(rewards); err != nil {
		return err
	}
	if !x.NoAdvantages && x.report.Reward.Used == 0 {
		return x.noReward()
	}
	return nil
}

// noReward returns the error of a run in which no rollout has a reward.
func (x *run) noReward() error {
	excluded := x.report.Reward.Excluded
	why := counted(excluded)
	if len(why) > 5 {
		why = append(why[:5], "…")
	}
	if n := x.report.LeftOut; n > 0 {
		why = append(why, fmt.Sprintf("%d more records cannot be used, the first: %v", n, x.report.Skips[0].Error))
	}
	fix := "join recorded results (traj.Options.Rewards, --rewards FILE), or ask for rows without advantages where nothing reads them (NoAdvantages, --estimator none; targets none and megatron)"
	switch {
	case x.Reward != nil:
		fix = "say in Excluded of fewer rollouts that they have no reward, or ask for rows without advantages (NoAdvantages)"
	case len(x.report.Shaping.Rollouts) > 0:
		fix = "loosen the rules that leave groups out (Pipeline.Shaping)"
	case excluded[mixedReason] > 0:
		fix = mixedFix
	case excluded[reward.ExcludedNoSteps] > 0:
		fix = "score the steps, or leave them out of the reward (Scale.StepCoef, --step-coef 0)"
	case strings.Contains(strings.Join(why, ""), reward.ExcludedOnlyScalar):
		fix = "take the recorded numbers (--scale auto)"
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "none of the %d rollouts has a usable outcome, so there is no reward to train on: %s",
		x.report.Rollouts, strings.Join(why, ", ")).WithFix("%s", fix)
}

// mayTrain reports whether r can have rows. Other rollouts do not count for the columns: a call cut
// off without log probabilities must not take the column from the file.
func (x *run) mayTrain(r *rollout.Rollout, got rollout.Reward) bool {
	e, ours := x.record()
	dropped := !x.NoAdvantages && got.Excluded != "" && (!ours || e.Population == "")
	return !dropped && x.shaper.masked(r) == ""
}

// noUsableRecord returns the error of a run whose records are all bad.
func (x *run) noUsableRecord() error {
	first := x.report.Skips[0].Error
	if x.report.LeftOut == 1 {
		return first
	}
	return rollout.Errorf(rollout.Plain(first).Kind, rollout.Where{}, "none of the %d records can be used; the first: %w", x.report.LeftOut, first)
}

// mixedReason is the reason for rollouts of a mixed group having no reward, mixedFix what to do.
const (
	mixedReason = "its group holds verdicts and numbers"
	mixedFix    = "choose the scale: recorded takes the numbers, signed the verdicts; or end every rollout of a group with the same of both"
)

// mixed leaves out each group in which the scale auto would compare verdicts with numbers of
// another range.
func (x *run) mixed(rewards []reward.GroupRewards) error {
	if x.Scale.Outcome != "auto" || x.NoAdvantages || x.Reward != nil {
		return nil
	}
	for i := range x.groups {
		if g := &x.groups[i]; !g.ByVerdict || !g.ByNumber {
			continue
		}
		why := rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Scale.Outcome"}, "group %q holds rollouts with a verdict, which count -1 or 1, and rollouts with a number only", rewards[i].Key).
			WithFix(mixedFix)
		if x.OnError == rollout.OnErrorStop {
			return why
		}
		if x.mixedBy == nil {
			x.mixedBy = map[int]error{}
		}
		x.mixedBy[i] = why
		for j := range rewards[i].Rollouts {
			r := &rewards[i].Rollouts[j]
			if r.Excluded == "" {
				x.report.leftStatistics(Skip{Rollout: r.ID, Reason: mixedReason})
				r.Excluded = mixedReason
			}
		}
	}
	return nil
}

// checkRecord validates a record and checks that its id is new.
func (x *run) checkRecord(r *rollout.Rollout) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if _, ok := x.seen.Of(r.ID); ok {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID, File: r.Origin.File, Line: r.Origin.Line}, "another rollout has the same id").
			WithFix("give every rollout its own id")
	}
	return nil
}

// skipOrFail records in the report that a record cannot be used, or returns the error that ends the
// run: any error with rollout.OnErrorStop, else that of a chat template which hit its limits.
func (x *run) skipOrFail(r *rollout.Rollout, err error) error {
	if r != nil {
		err = inSource(err, r.Origin)
	}
	if x.OnError == rollout.OnErrorStop {
		return err
	}
	// A template that hit its limit will hit it for every rollout, each time at the cost of the
	// limit.
	if e, ok := errors.AsType[*chat.Error](err); ok && e.Class == chat.LimitError {
		return err
	}
	reason := "error"
	if e, ok := asDetail(err); ok {
		reason = e.Kind.Error()
	}
	x.report.skip(skipOf(r, err, reason))
	return nil
}

func skipOf(r *rollout.Rollout, err error, reason string) Skip {
	s := Skip{Error: err, Reason: reason}
	if r != nil {
		s.Rollout, s.File, s.Line = r.ID, r.Origin.File, r.Origin.Line
	} else if e, ok := asDetail(err); ok {
		s.Rollout, s.File, s.Line = e.Where.Rollout, e.Where.File, e.Where.Line
	}
	return s
}

// inSource adds the file a rollout was read from to an error that names none.
func inSource(err error, from rollout.Origin) error {
	e, ok := err.(*rollout.Error)
	if !ok || e.Where.File != "" {
		return err
	}
	c := *e
	// A line without a file is a line of the template, which the message quotes.
	c.Where.File, c.Where.Line, c.Where.Column = from.File, from.Line, 0
	return &c
}

func (x *run) progress(p Progress) {
	if x.Progress != nil {
		x.Progress(p)
	}
}
