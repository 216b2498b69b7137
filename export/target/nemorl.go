package target

// nemoRLSpec: NeMo-RL 7ea279ab. Messages are runs of equal mask and carry their
// log probabilities; the loader gives each token its own advantage. The
// loss compares with log probabilities that it computes before the step; those of the file
// are read by its importance sampling correction alone.
func nemoRLSpec() spec {
	return spec{name: "nemo-rl", advantages: true, keepAborted: true, mean: meanAdvantage}
}
