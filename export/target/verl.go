package target

// verlSpec: verl 1dda039b. The replaying agent loop hands over one score per
// row, which the estimator "turnpack" takes as the advantage; aborted rollouts
// would enter group statistics.
func verlSpec() spec {
	return spec{name: "verl", logprobs: true, advantage: true, scalar: true, mean: meanAdvantage}
}
