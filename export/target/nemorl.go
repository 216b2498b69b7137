package target

// nemoRLSpec: NeMo-RL 7ea279ab. Messages are runs of equal mask and carry their
// log probabilities; the loader gives each token its own advantage.
func nemoRLSpec() spec {
	return spec{name: "nemo-rl", logprobs: true, advantages: true, keepAborted: true, mean: meanAdvantage}
}
