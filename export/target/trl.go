package target

// trlSpec: TRL 1.16.0, GRPOTrainer with rollout_func: one row per rollout and
// groups of exactly num_generations, at least 2.
func trlSpec() spec {
	return spec{name: "trl", logprobs: true, advantages: true, keepAborted: true, oneRow: true, equal: true, mean: meanAdvantage}
}
