package target

// trlSpec: TRL 1.16.0, GRPOTrainer with rollout_func: one row per rollout and
// groups of exactly num_generations, at least 2. Without log probabilities the policy
// before the step is the old one.
func trlSpec() spec {
	return spec{name: "trl", advantages: true, keepAborted: true, oneRow: true, equal: true, mean: meanAdvantage}
}
