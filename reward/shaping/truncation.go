package shaping

import "github.com/turnpack/turnpack/rollout"

// Truncated scales the rewards of rollouts that did not stop by themselves
// (NeMo RL's stop_properly penalty, 7ea279abf): 1 leaves them, 0 removes them.
func Truncated(reward float64, truncated bool, coef float64) float64 {
	if truncated {
		return reward * coef
	}
	return reward
}

// ZeroOnNonStop keeps mask and rewards only of rollouts whose finish reason is
// exactly "stop" (SkyRL's zero_reward_on_non_stop and mask, a9564572e). Every
// other spelling is zeroed: "complete", "tool_calls", "STOP", "". rewards is one
// value per rollout, or one per step or token.
func ZeroOnNonStop(finishReason string, rewards []float64, mask []bool) ([]float64, []bool) {
	if finishReason == "stop" {
		return rewards, mask
	}
	return make([]float64, len(rewards)), make([]bool, len(mask))
}

// Repetition is the n-gram repetition penalty of arXiv:2502.03373, appendix C.2,
// as TRL (1.16.0) computes it on token ids: max × (1 − distinct n-grams / n-grams),
// 0 for a response shorter than n. max is 0 or less.
func Repetition(ids []rollout.TokenID, n int, max float64) float64 {
	total := len(ids) - n + 1
	if n < 1 || total < 1 {
		return 0
	}
	// A gram is named by its rank among the grams one shorter, so no n-gram is
	// ever copied.
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
