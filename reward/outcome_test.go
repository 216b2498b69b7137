package reward

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func ptr[T any](v T) *T { return &v }

func TestScore(t *testing.T) {
	yes, no := ptr(true), ptr(false)
	steps := []rollout.StepScore{{Step: 0, Score: ptr(1.0)}, {Step: 1}, {Step: 2, Score: ptr(-0.5)}}
	for _, c := range []struct {
		reason   string
		r        rollout.Rollout
		s        OutcomePolicy
		total    float64
		excluded string
	}{
		{"the default scale is signed", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}}, OutcomePolicy{}, 1, ""},
		{"unresolved is -1", rollout.Rollout{Outcome: rollout.Outcome{Resolved: no}}, OutcomePolicy{}, -1, ""},
		{"unresolved is 0 on the binary scale", rollout.Rollout{Outcome: rollout.Outcome{Resolved: no}}, OutcomePolicy{Outcome: "binary"}, 0, ""},
		{"a verdict alone decides", rollout.Rollout{Outcome: rollout.Outcome{Verdict: rollout.VerdictTestsTimeout}}, OutcomePolicy{}, -1, ""},
		{"a truncated rollout keeps its outcome", rollout.Rollout{Status: rollout.StatusTruncated, Outcome: rollout.Outcome{Resolved: no}}, OutcomePolicy{}, -1, ""},
		{"infrastructure verdicts are no -1", rollout.Rollout{Outcome: rollout.Outcome{Verdict: rollout.VerdictOOM}}, OutcomePolicy{}, 0, "infrastructure failure: oom"},
		{"a failure is no -1 even with a flag", rollout.Rollout{Failure: &rollout.Failure{Reason: "image_pull"}, Outcome: rollout.Outcome{Resolved: no}}, OutcomePolicy{}, 0, "infrastructure failure: image_pull"},
		{"failed status", rollout.Rollout{Status: rollout.StatusFailed, Outcome: rollout.Outcome{Resolved: no}}, OutcomePolicy{}, 0, "infrastructure failure"},
		{"aborted status", rollout.Rollout{Status: rollout.StatusAborted, ExitStatus: "SIGTERM", Outcome: rollout.Outcome{Resolved: no}}, OutcomePolicy{}, 0, "aborted: SIGTERM"},
		{"a system that counts failures as unresolved", rollout.Rollout{Outcome: rollout.Outcome{Verdict: rollout.VerdictInfraError}}, OutcomePolicy{InfraUnresolved: true}, -1, ""},
		{"nothing recorded", rollout.Rollout{}, OutcomePolicy{}, 0, "no outcome recorded"},
		{"a scalar is not a yes or no", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(1.0)}}, OutcomePolicy{}, 0, "no outcome recorded: only a scalar, which the scale signed cannot read"},
		{"the recorded scale takes it", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(-2.5)}}, OutcomePolicy{Outcome: "recorded"}, -2.5, ""},
		{"auto takes a number where nothing else is recorded", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(-2.5)}}, OutcomePolicy{Outcome: "auto"}, -2.5, ""},
		{"auto takes the verdict where there is one", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(0.0), Resolved: no}}, OutcomePolicy{Outcome: "auto"}, -1, ""},
		{"a total that no row holds", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}, Steps: steps}, OutcomePolicy{StepCoef: 4e39}, 1, "unusable reward: total is 1e+39"},
		{"a number that no row holds", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(-1e39)}}, OutcomePolicy{Outcome: "recorded"}, 0, "unusable reward: total is -1e+39"},
		{"the same with steps", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(1e39)}, Steps: steps}, OutcomePolicy{Outcome: "auto", StepCoef: 1}, 0, "unusable reward: total is 1e+39"},
		{"auto invents nothing", rollout.Rollout{}, OutcomePolicy{Outcome: "auto"}, 0, "no outcome recorded"},
		{"the recorded scale does not invent one", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}}, OutcomePolicy{Outcome: "recorded"}, 0, "no reward recorded"},
		{"a grade", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(0.25), Verdict: rollout.VerdictGraded}}, OutcomePolicy{Outcome: "partial"}, 0.25, ""},
		{"a flag on the partial scale", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}}, OutcomePolicy{Outcome: "partial"}, 1, ""},
		{"a grade out of range", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(3.0)}}, OutcomePolicy{Outcome: "partial"}, 0, "unusable reward: recorded reward 3 is not a grade in [0, 1]"},
		{"a reward that is no number", rollout.Rollout{Outcome: rollout.Outcome{Reward: ptr(math.NaN())}}, OutcomePolicy{Outcome: "recorded"}, 0, "unusable reward: recorded reward is NaN"},
		{"flag and verdict disagree", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes, Verdict: rollout.VerdictNoPatch}}, OutcomePolicy{}, 0, "contradictory outcome: resolved is true, verdict is no_patch"},
		{"step scores add their mean over the scored ones", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}, Steps: steps}, OutcomePolicy{StepCoef: 2}, 1.5, ""},
		{"step scores alone change nothing", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}, Steps: steps}, OutcomePolicy{}, 1, ""},
		{"a failed judge whose scores do not count", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}, Steps: []rollout.StepScore{{}}}, OutcomePolicy{}, 1, ""},
		{"a failed judge is no 0", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}, Steps: []rollout.StepScore{{}}}, OutcomePolicy{StepCoef: 1}, 1, "no step score computed"},
		{"unless allowed", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}, Steps: []rollout.StepScore{{}}}, OutcomePolicy{StepCoef: 1, StepsOptional: true}, 1, ""},
		{"a rollout that nobody judged keeps its outcome", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}}, OutcomePolicy{StepCoef: 1}, 1, ""},
		{"a step score that is no number", rollout.Rollout{Outcome: rollout.Outcome{Resolved: yes}, Steps: []rollout.StepScore{{Score: ptr(math.Inf(1))}}}, OutcomePolicy{StepCoef: 1}, 1, "unusable reward: mean step score is NaN"},
	} {
		got := Score(&c.r, c.s)
		require.Equal(t, c.total, got.Total, c.reason)
		require.Equal(t, c.excluded, got.Excluded, c.reason)
	}
	require.Equal(t, 0.25, *Score(&rollout.Rollout{Steps: steps}, OutcomePolicy{}).Step)
	require.ErrorIs(t, OutcomePolicy{Outcome: "9", StepCoef: math.Inf(1)}.Validate(), rollout.KindInput)
	require.NoError(t, OutcomePolicy{}.Validate())
}

func TestScoreExcludesByAPolicyWithAnUnknownWord(t *testing.T) {
	r := Score(&rollout.Rollout{Outcome: rollout.Outcome{Verdict: rollout.VerdictResolved}}, OutcomePolicy{Outcome: "Binary"})
	require.NotEmpty(t, r.Excluded)
	require.Contains(t, r.Reason, "Binary")
}
