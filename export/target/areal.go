package target

// arealSpec: AReaL 4aef98d8. The reward sits on the label of the last token, so
// a row must end on a trained one (rollout.FinishRows sees to that), and versions are
// padded as numbers. Aborted rollouts have no place in a replayed batch.
func arealSpec() spec {
	return spec{name: "areal", logprobs: true, advantage: true, versions: true, scalar: true, mean: meanAdvantage}
}
