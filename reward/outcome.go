package reward

import (
	"cmp"
	"fmt"
	"math"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward/internal/stats"
	"github.com/turnpack/turnpack/rollout"
)

// Values of OutcomePolicy.Outcome.
const (
	scaleSigned   = "signed"
	scaleBinary   = "binary"
	scalePartial  = "partial"
	scaleRecorded = "recorded"
	scaleAuto     = "auto"
)

// OutcomePolicy defines how the recorded results of a rollout become a reward. The zero value gives +1
// and −1 and ignores step scores.
type OutcomePolicy struct {
	// Outcome selects the number for an outcome: "signed" or "", +1 where it is resolved and −1 where
	// not; "binary", 1 or 0; "partial", the recorded grade in [0, 1], or binary without a grade;
	// "recorded", the recorded reward, whatever its range; "auto", signed where a verdict is recorded
	// and the recorded reward where only a number is. With "auto", one group should not mix the two.
	Outcome string
	// StepCoef multiplies the mean step score in the total: outcome + StepCoef ×
	// mean. 0 leaves step scores out of the total (they are still reported).
	StepCoef float64
	// StepsOptional gives a rollout that was judged but has no step score its outcome as total. By
	// default it is excluded, since a failed judge is not a mean of 0. A rollout that was never judged
	// always keeps its outcome as total.
	StepsOptional bool
	// InfraUnresolved counts infrastructure failures as unresolved, as some trainers do. By default
	// they are excluded from the statistics.
	InfraUnresolved bool
}

// Validate reports every fault of s at once.
func (s OutcomePolicy) Validate() error {
	var f faults.List
	faults.Word(&f, "Scale.Outcome", s.Outcome, scaleSigned, scaleBinary, scalePartial, scaleRecorded, scaleAuto)
	if !finite(s.StepCoef) {
		f.Add("Scale.StepCoef", "%g is not finite", s.StepCoef)
	}
	return f.Err()
}

// Reasons for which Score excludes a rollout. Each is a prefix of rollout.Reward.Excluded; a colon and
// details may follow.
const (
	excludedInfra         = "infrastructure failure"
	excludedAborted       = "aborted"
	ExcludedNoOutcome     = "no outcome recorded"
	ExcludedOnlyScalar    = ExcludedNoOutcome + ": only a scalar"
	ExcludedNoReward      = "no reward recorded"
	excludedContradiction = "contradictory outcome"
	ExcludedBadReward     = "unusable reward"
	ExcludedNoSteps       = "no step score computed"
)

// Score returns the reward of one rollout, computed from its recorded results. It never fails: a
// rollout that cannot be scored, or any rollout with a policy that fails Validate, is returned with
// the reason in Excluded and leaves the statistics. An infrastructure failure (failed or aborted
// status, Failure set, an infrastructure verdict) is never turned into a low reward, unless
// InfraUnresolved asks for it.
func Score(r *rollout.Rollout, s OutcomePolicy) rollout.Reward {
	if r == nil {
		return rollout.Reward{Excluded: ExcludedNoReward, Reason: "the rollout is nil"}
	}
	if err := s.Validate(); err != nil {
		return rollout.Reward{Excluded: ExcludedNoReward, Reason: err.Error()}
	}
	out := rollout.Reward{Verdict: verdict(r.Outcome), Reason: r.Outcome.Reason}
	if out.Reason == "" && out.Verdict != rollout.VerdictUnknown {
		out.Reason = out.Verdict.String()
	}
	mean, steps := MeanStep(r.Steps)
	if steps > 0 {
		out.Step = &mean
	}
	infra := Infrastructure(r)
	if infra != "" && !s.InfraUnresolved {
		out.Excluded = infra
		return out
	}
	value, why := outcomeValue(r.Outcome, out.Verdict, s.Outcome)
	if infra != "" {
		out.Reason, why = infra, ""
		value = unresolved(s.Outcome)
	}
	if why != "" {
		out.Excluded = why
		return out
	}
	out.Outcome, out.Total = value, value
	switch {
	case s.StepCoef == 0:
	case steps > 0 && finite(mean):
		out.Total += s.StepCoef * mean
	case steps > 0:
		out.Excluded = fmt.Sprintf("%s: mean step score is %g", ExcludedBadReward, mean)
	case !s.StepsOptional && len(r.Steps) > 0:
		out.Excluded = ExcludedNoSteps
	}
	if out.Excluded == "" && !fitsFloat32(out.Total) {
		out.Excluded = fmt.Sprintf("%s: total is %g", ExcludedBadReward, out.Total)
		// Rows of excluded rollouts may be written too, so their values must fit.
		if !fitsFloat32(out.Outcome) {
			out.Outcome = 0
		}
		out.Total = out.Outcome
	}
	return out
}

// MeanStep returns the mean over the steps that have a score, and the number of those steps.
func MeanStep(steps []rollout.StepScore) (mean float64, n int) {
	var sum stats.Sum
	for _, s := range steps {
		if s.Score == nil {
			continue
		}
		if !finite(*s.Score) {
			return math.NaN(), len(steps)
		}
		sum.Add(*s.Score)
		n++
	}
	if n == 0 {
		return 0, 0
	}
	return sum.Round() / float64(n), n
}

// Of returns the estimator's input for a scored rollout.
func Of(r *rollout.Rollout, scored rollout.Reward) RolloutReward {
	if r == nil {
		return RolloutReward{Reward: scored.Total, Excluded: ExcludedNoReward}
	}
	return RolloutReward{ID: r.ID, Reward: scored.Total, Excluded: scored.Excluded}
}

// Infrastructure returns the reason why the outcome of r says nothing about the policy, because the
// rollout failed or was stopped from outside; "" otherwise.
func Infrastructure(r *rollout.Rollout) string {
	if r == nil {
		return ""
	}
	detail := func(prefix string) string {
		switch {
		case r.Failure != nil && r.Failure.Reason != "":
			return prefix + ": " + r.Failure.Reason
		case r.Outcome.Verdict.Infra():
			return prefix + ": " + r.Outcome.Verdict.String()
		case r.ExitStatus != "":
			return prefix + ": " + r.ExitStatus
		}
		return prefix
	}
	switch {
	case r.Status == rollout.StatusAborted:
		return detail(excludedAborted)
	case r.Status == rollout.StatusFailed, r.Failure != nil, r.Outcome.Verdict.Infra():
		return detail(excludedInfra)
	}
	return ""
}

// verdict returns the recorded verdict, or the one implied by the recorded Resolved flag.
func verdict(o rollout.Outcome) rollout.Verdict {
	if (o.Verdict == rollout.VerdictUnknown || o.Verdict == rollout.VerdictGraded) && o.Resolved != nil {
		if *o.Resolved {
			return rollout.VerdictResolved
		}
		return rollout.VerdictUnresolved
	}
	return o.Verdict
}

func outcomeValue(o rollout.Outcome, v rollout.Verdict, s string) (value float64, excluded string) {
	if o.Resolved != nil && *o.Resolved != (v == rollout.VerdictResolved) {
		return 0, fmt.Sprintf("%s: resolved is %t, verdict is %s", excludedContradiction, *o.Resolved, v)
	}
	if o.Reward != nil && !finite(*o.Reward) {
		return 0, fmt.Sprintf("%s: recorded reward is %g", ExcludedBadReward, *o.Reward)
	}
	switch s {
	case scaleRecorded:
		if o.Reward == nil {
			return 0, ExcludedNoReward
		}
		return *o.Reward, ""
	case scalePartial:
		if o.Reward != nil {
			if *o.Reward < 0 || *o.Reward > 1 {
				return 0, fmt.Sprintf("%s: recorded reward %g is not a grade in [0, 1]", ExcludedBadReward, *o.Reward)
			}
			return *o.Reward, ""
		}
	}
	switch {
	case v == rollout.VerdictResolved:
		return 1, ""
	case v == rollout.VerdictUnknown && o.Reward == nil:
		return 0, ExcludedNoOutcome
	case OnlyScalar(v) && s == scaleAuto && o.Reward != nil:
		return *o.Reward, ""
	case OnlyScalar(v):
		return 0, ExcludedOnlyScalar + ", which the scale " + cmp.Or(s, scaleSigned) + " cannot read"
	}
	return unresolved(s), ""
}

// OnlyScalar reports whether v carries no decision of its own, so that only a recorded number can
// score the rollout.
func OnlyScalar(v rollout.Verdict) bool {
	return v == rollout.VerdictUnknown || v == rollout.VerdictGraded
}

func unresolved(s string) float64 {
	if s == "" || s == scaleSigned || s == scaleAuto {
		return -1
	}
	return 0
}

func finite(x float64) bool { return x-x == 0 }

// fitsFloat32 reports whether x fits in a float32, the type of the columns of a row.
func fitsFloat32(x float64) bool { return finite(float64(float32(x))) }
