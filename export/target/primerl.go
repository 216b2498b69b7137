package target

import (
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// primeRLSpec: prime-rl 559b4477. It divides the logits by the temperature and
// reads advantages and weights per token; a row over the sequence length would
// be cut in silence (set MaxTokens to it).
func primeRLSpec() spec {
	return spec{name: "prime-rl", temperatures: true, logprobs: true, advantages: true, weights: true, keepAborted: true, mean: meanWeights,
		row: func(t *Target, s *rollout.Sample, _ []int32) error {
			if !(s.Temperature > 0) {
				return t.refuse(s, export.ColTemperature, "record the temperature the rollout was sampled with", "it divides logits by the temperature, which is %g", s.Temperature)
			}
			return nil
		}}
}
