package target

// trlAsyncSpec: TRL 1.16.0, AsyncGRPOTrainer with a replaying worker: any
// number of rows per rollout, one advantage per row.
func trlAsyncSpec() spec {
	return spec{name: "trl-async", logprobs: true, advantage: true, scalar: true, keepAborted: true, mean: meanAdvantage}
}
