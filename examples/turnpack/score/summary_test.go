package score

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// The mean reward is over the rewards that a conversion of the same rollouts would use:
// infrastructure failures have none.
func TestMeanReward(t *testing.T) {
	half, resolved := 0.5, true
	steps := []rollout.StepScore{{Step: 0, Score: &half}, {Step: 1}}
	for name, c := range map[string]struct {
		r    rollout.Rollout
		want *float64
	}{
		"a flag":                  {rollout.Rollout{Outcome: rollout.Outcome{Resolved: &resolved}, Steps: steps}, new(2.0)},
		"a verdict":               {rollout.Rollout{Outcome: rollout.Outcome{Verdict: rollout.VerdictNoPatch}, Steps: steps}, new(0.0)},
		"a number":                {rollout.Rollout{Outcome: rollout.Outcome{Reward: new(0.25)}, Steps: steps}, new(1.25)},
		"no step score":           {rollout.Rollout{Outcome: rollout.Outcome{Reward: new(0.25)}}, new(0.25)},
		"no outcome":              {rollout.Rollout{Steps: steps}, nil},
		"aborted":                 {rollout.Rollout{Status: rollout.StatusAborted, Outcome: rollout.Outcome{Reward: new(0.0)}, Steps: steps}, nil},
		"infrastructure failure":  {rollout.Rollout{Outcome: rollout.Outcome{Verdict: rollout.VerdictInfraError, Reward: new(-1.0)}, Steps: steps}, nil},
		"failure with a resolved": {rollout.Rollout{Status: rollout.StatusFailed, Failure: &rollout.Failure{Reason: "oom"}, Outcome: rollout.Outcome{Resolved: &resolved}}, nil},
	} {
		s := summary{scale: (&Cmd{Coef: 2}).scale()}
		s.add(&c.r)
		if c.want == nil {
			require.Zero(t, s.rewarded, name)
			continue
		}
		require.Equal(t, 1, s.rewarded, name)
		require.InDelta(t, *c.want, s.rewardSum, 1e-12, name)
	}
}
