package shaped

import (
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// spend applies Spending, group by group, to the rewards of the valid members that were not left out.
func (r *Rules) spend(groups []Group, out [][]Fate, report *shaping.Report) error {
	if r.Spending == nil {
		return nil
	}
	for i := range groups {
		var rewards []float64
		var usage []Usage
		var at []*Member
		for j := range groups[i].Members {
			if m := &groups[i].Members[j]; m.valid() && out[i][j].Out == "" {
				rewards, usage, at = append(rewards, m.Reward), append(usage, m.Usage), append(at, m)
			}
		}
		if mean := meanOf(rewards); mean < 0 {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Shaping.Spending"},
				"group %q has a mean reward of %g, and the length penalty is a share of it: below 0 it would be a bonus", groups[i].Key, mean).
				WithFix("use rewards of 0 or more: --scale binary (OutcomePolicy.Outcome), or --reward-affine 1:0.5 for rewards of -1 and 1")
		}
		for k, value := range Spend(*r.Spending, rewards, usage) {
			if at[k].Reward != value {
				at[k].Reward = value
				add(&report.Rewards, RuleSpending)
			}
		}
	}
	return nil
}

// Spend returns the rewards of one group after the penalty. usage holds one entry per reward; missing
// usage costs nothing.
func Spend(s shaping.Spending, rewards []float64, usage []Usage) []float64 {
	out := make([]float64, len(rewards))
	mean := meanOf(rewards)
	output, input, turns := 1, 1, 1
	for _, u := range usage[:min(len(usage), len(rewards))] {
		output = max(output, u.OutputTokens)
		input = max(input, u.TotalTokens-u.OutputTokens)
		turns = max(turns, u.Turns)
	}
	for i, r := range rewards {
		var u Usage
		if i < len(usage) {
			u = usage[i]
		}
		share := s.Output*float64(u.OutputTokens)/float64(output) +
			s.Input*float64(u.TotalTokens-u.OutputTokens)/float64(input) +
			s.Turns*float64(u.Turns)/float64(turns)
		out[i] = r - mean*share
	}
	return out
}

// meanOf returns the mean of rewards, 0 if there are none.
func meanOf(rewards []float64) float64 {
	sum := 0.0
	for _, r := range rewards {
		sum += r
	}
	return sum / float64(max(1, len(rewards)))
}

// Truncated returns the reward of a rollout, multiplied by coef if it was truncated (NeMo RL's
// stop_properly penalty, 7ea279abf).
func Truncated(reward float64, truncated bool, coef float64) float64 {
	if truncated {
		return reward * coef
	}
	return reward
}

// ZeroOnNonStop returns rewards and mask unchanged if the finish reason is exactly "stop", else zeroed
// (SkyRL's zero_reward_on_non_stop and mask, a9564572e). Any other spelling is zeroed: "complete",
// "tool_calls", "STOP", "". rewards holds one value per rollout, step or token.
func ZeroOnNonStop(finishReason string, rewards []float64, mask []bool) ([]float64, []bool) {
	if finishReason == "stop" {
		return rewards, mask
	}
	return make([]float64, len(rewards)), make([]bool, len(mask))
}

// Repetition returns the n-gram repetition penalty of arXiv:2502.03373, appendix C.2, as TRL (1.16.0)
// computes it on token ids: max × (1 − distinct n-grams / n-grams), 0 for a response shorter than n.
// max is 0 or less.
func Repetition(ids []rollout.TokenID, n int, max float64) float64 {
	total := len(ids) - n + 1
	if n < 1 || total < 1 {
		return 0
	}
	// Each n-gram is identified by the rank of the next shorter one and a token, so no n-gram is
	// copied.
	rank := make([]int, len(ids))
	for i, id := range ids {
		rank[i] = int(id)
	}
	distinct := 0
	for length := 1; length <= n; length++ {
		type pair struct{ head, last int }
		seen := map[pair]int{}
		next := make([]int, len(ids)-length+1)
		for i := range next {
			p := pair{rank[i], 0}
			if length > 1 {
				p.last = int(ids[i+length-1])
			}
			k, ok := seen[p]
			if !ok {
				k = len(seen)
				seen[p] = k
			}
			next[i] = k
		}
		rank, distinct = next, len(seen)
	}
	return (1 - float64(distinct)/float64(total)) * max
}
