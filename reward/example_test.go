package reward_test

import (
	"fmt"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// In the first of two groups, one rollout of four solved its task and one lost its container; in the
// second, none solved it.
func Example() {
	yes, no := true, false
	rollouts := []*rollout.Rollout{
		{ID: "a0", Group: "a", Outcome: rollout.Outcome{Resolved: &yes}},
		{ID: "a1", Group: "a", Outcome: rollout.Outcome{Resolved: &no}},
		{ID: "a2", Group: "a", Outcome: rollout.Outcome{Resolved: &no}},
		{ID: "a3", Group: "a", Status: rollout.StatusFailed, Failure: &rollout.Failure{Reason: "container_lost"}},
		{ID: "b0", Group: "b", Outcome: rollout.Outcome{Resolved: &no}},
		{ID: "b1", Group: "b", Outcome: rollout.Outcome{Resolved: &no}},
	}
	var scores []reward.GroupRewards
	for _, r := range rollouts {
		scored := reward.Of(r, reward.Score(r, reward.OutcomePolicy{}))
		scores = append(scores, reward.GroupRewards{Key: r.Group, Rollouts: []reward.RolloutReward{scored}})
	}
	statistics, err := reward.GRPO().Statistics(scores)
	if err != nil {
		fmt.Println(err)
	}
	for _, r := range rollouts {
		a, err := statistics.Advantage(r.Group, reward.Of(r, reward.Score(r, reward.OutcomePolicy{})))
		if err != nil {
			fmt.Println(err)
		}
		if a.Dropped != "" {
			fmt.Println(r.ID, a.Dropped)
			continue
		}
		fmt.Printf("%s %+.4f\n", r.ID, a.Value)
	}
	// Output:
	// a0 +1.1547
	// a1 -0.5773
	// a2 -0.5773
	// a3 excluded: infrastructure failure: container_lost
	// b0 +0.0000
	// b1 +0.0000
}

func ExamplePreset() {
	group := []reward.GroupRewards{{Key: "task", Rollouts: []reward.RolloutReward{
		{ID: "0", Reward: 1}, {ID: "1", Reward: 0}, {ID: "2", Reward: 0}, {ID: "3", Reward: 0},
	}}}
	for _, name := range []string{"verl_grpo", "verl_rloo", "prime_grpo", "skyrl_maxrl"} {
		e, _ := reward.Preset(name)
		got, _, err := reward.Advantages(group, e)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%-24s %+.4f %+.4f\n", e.Name, got[0][0].Value, got[0][1].Value)
	}
	// Output:
	// verl_grpo@1dda039b9      +1.5000 -0.5000
	// verl_rloo@1dda039b9      +1.0000 -0.3333
	// prime_grpo@559b44772     +0.7500 -0.2500
	// skyrl_maxrl@a9564572e    +3.0000 -1.0000
}
