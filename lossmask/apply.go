package lossmask

import "github.com/turnpack/turnpack/rollout"

// Apply returns seq with the loss weights that p gives it. The weights are a new slice; the other
// columns stay shared. Faults of p are KindInput errors. Masks of whole rows (MaxTokens,
// MaskStatus) are not applied: see RowReason.
func Apply(seq rollout.Sequence, p Policy) (rollout.Sequence, error) {
	if err := p.Validate(); err != nil {
		return seq, err
	}
	if err := columns(&seq); err != nil {
		return seq, err
	}
	w := make([]float32, seq.Len())
	last := int32(-1)
	if p.LastTurn {
		for _, t := range seq.Turn {
			last = max(last, t)
		}
	}
	// In a separator, the weight of the trained stop token before it; else 0.
	var separator float32
	var turn int32 = -2
	var turnWeight float32
	for i := 1; i < len(w); i++ {
		if separator != 0 {
			if scaffold := seq.Source[i] < 0 && seq.Turn[i] < 0 && seq.Flags[i]&rollout.FlagSpecial == 0; scaffold {
				w[i] = separator
				continue
			}
			separator = 0
		}
		if !p.takes(&seq, i, last) {
			continue
		}
		if seq.Turn[i] != turn {
			turn, turnWeight = seq.Turn[i], 1
			if p.TurnWeight != nil {
				turnWeight = p.TurnWeight(int(turn))
			}
			if !(turnWeight >= 0) || turnWeight > 1e30 {
				return seq, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Turn: rollout.At(int(turn)), Field: "lossmask.Policy.TurnWeight"}, "weight %g is not a finite number >= 0", turnWeight)
			}
		}
		w[i] = turnWeight
		if p.TrainSeparator && seq.Flags[i]&rollout.FlagStop != 0 {
			separator = turnWeight
		}
	}
	return seq.WithWeight(w)
}

func (p *Policy) takes(seq *rollout.Sequence, i int, last int32) bool {
	f := seq.Flags[i]
	sampled := f&rollout.FlagSampled != 0
	if !sampled {
		holdsText := f&(rollout.FlagContent|rollout.FlagReasoning|rollout.FlagToolCall) != 0
		if p.Assistant == nil || !holdsText || !p.Assistant(int(seq.Source[i])) {
			return false
		}
	}
	if p.LastTurn && (!sampled || seq.Turn[i] != last) {
		return false
	}
	return (p.Turns == nil || p.Turns(int(seq.Turn[i]))) &&
		(p.Messages == nil || p.Messages(int(seq.Source[i]))) &&
		(!p.NoReasoning || f&rollout.FlagReasoning == 0) &&
		(!p.NoToolCalls || f&rollout.FlagToolCall == 0)
}

// columns checks that the columns that masks depend on have an entry per token.
func columns(seq *rollout.Sequence) error {
	if n := seq.Len(); len(seq.Source) != n || len(seq.Flags) != n || len(seq.Turn) != n {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout}, "%d tokens have %d sources, %d flags and %d turns, expected one of each for each",
			n, len(seq.Source), len(seq.Flags), len(seq.Turn))
	}
	return nil
}
