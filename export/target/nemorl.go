package target

// nemoRLSpec: NeMo-RL 7ea279ab. Messages are runs of equal mask and carry their
// log probabilities; the batch field of advantages is filled from the scalar.
func nemoRLSpec() spec {
	return spec{name: "nemo-rl", logprobs: true, advantage: true, scalar: true, keepAborted: true, mean: meanAdvantage}
}
