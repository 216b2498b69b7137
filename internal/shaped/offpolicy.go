package shaped

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// Recorded returns the log probability of each sampled token of seq under the training policy, as
// recorded by the turns of r; nil if a trained token has none, or is not the recorded token (a drift
// repair tokenizes it again).
func Recorded(r *rollout.Rollout, seq *rollout.Sequence) []float32 {
	turns := rollout.TurnsOf(r)
	if seq == nil || seq.Logprob == nil || !slices.ContainsFunc(turns, func(t rollout.Turn) bool { return t.TrainLogprobs != nil }) {
		return nil
	}
	out, at := make([]float32, seq.Len()), map[int32]int{}
	for i, turn := range seq.Turn {
		if turn < 0 || seq.Flags[i]&rollout.FlagSampled == 0 {
			continue
		}
		t := &turns[turn]
		k := at[turn]
		for k < len(t.TrainLogprobs) && (t.Output[k] != seq.IDs[i] || k < len(t.Logprobs) && t.Logprobs[k] != seq.Logprob[i]) {
			k++ // dropped by a repair
		}
		if k >= len(t.TrainLogprobs) {
			if seq.Weight == nil || seq.Weight[i] > 0 {
				return nil
			}
			continue
		}
		out[i], at[turn] = t.TrainLogprobs[k], k+1
	}
	return out
}

// Bound returns seq with its loss weights multiplied by the bounded ratios, or the reason why the
// whole row is masked. train has one value per token and is read where Weight > 0; seq must have
// Logprob and Weight.
func Bound(o shaping.OffPolicy, seq rollout.Sequence, train []float32) (rollout.Sequence, string, error) {
	if len(train) != seq.Len() || seq.Logprob == nil || seq.Weight == nil {
		return seq, "", rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Field: "Shaping.OffPolicy"},
			"%d training log probabilities for %d tokens, log probabilities recorded: %t, loss weights: %t", len(train), seq.Len(), seq.Logprob != nil, seq.Weight != nil)
	}
	row := offpolicy.Row{Mask: make([]bool, seq.Len()), Train: make([]float64, seq.Len()), Rollout: make([]float64, seq.Len())}
	sum, n := 0.0, 0
	for i, w := range seq.Weight {
		if w <= 0 {
			continue
		}
		row.Mask[i], row.Train[i], row.Rollout[i] = true, float64(train[i]), float64(seq.Logprob[i])
		sum += math.Exp(math.Abs(row.Rollout[i] - row.Train[i]))
		n++
	}
	if o.MaxError > 0 && n > 0 && !(sum/float64(n) <= o.MaxError) {
		return seq, reasonLogprobError, nil
	}
	if o.Weights == nil {
		return seq, "", nil
	}
	ratios, err := offpolicy.Weights([]offpolicy.Row{row}, *o.Weights)
	if err != nil {
		return seq, "", err
	}
	weight := slices.Clone(seq.Weight)
	for i, on := range row.Mask {
		if on {
			weight[i] = float32(float64(weight[i]) * ratios[0][i])
		}
	}
	seq, err = seq.WithWeight(weight)
	return seq, "", err
}
