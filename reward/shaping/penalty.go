package shaping

// Usage is what a rollout spent.
type Usage struct{ OutputTokens, TotalTokens, Turns int }

// Spending is prime-rl's linear length penalty (559b44772): each reward loses
// the group's mean reward times a weighted sum of its output tokens, its input
// tokens (total − output) and its turns, each as a share of the group's largest.
// A group that solves nothing is not penalised.
type Spending struct{ Output, Input, Turns float64 }

// Apply returns the rewards of one group after the penalty. usage has one entry
// per reward.
func (s Spending) Apply(rewards []float64, usage []Usage) []float64 {
	out := make([]float64, len(rewards))
	if len(rewards) == 0 {
		return out
	}
	mean := 0.0
	output, input, turns := 1, 1, 1
	for i, r := range rewards {
		mean += r
		if i < len(usage) {
			output = max(output, usage[i].OutputTokens)
			input = max(input, usage[i].TotalTokens-usage[i].OutputTokens)
			turns = max(turns, usage[i].Turns)
		}
	}
	mean /= float64(len(rewards))
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
