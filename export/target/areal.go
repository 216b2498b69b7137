package target

// arealSpec: AReaL 4aef98d8. The reward sits on the label of the last token, so
// a row must end on a trained one (rollout.FinishRows sees to that), and versions are
// padded as numbers. Aborted rollouts have no place in a replayed batch. Without log
// probabilities its actor computes those of the policy before the step (recompute_logprob).
func arealSpec() spec {
	return spec{name: "areal", advantage: true, versions: true, scalar: true, mean: meanAdvantage}
}
