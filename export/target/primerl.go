package target

// primeRLSpec: prime-rl 559b4477. It divides the logits by the temperature and
// reads advantages and weights per token; a row over the sequence length would
// be cut in silence (set MaxTokens to it).
func primeRLSpec() spec {
	return spec{name: "prime-rl", temperatures: true, logprobs: true, advantages: true, weights: true, keepAborted: true, mean: meanWeights}
}
