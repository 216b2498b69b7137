package rollout

import (
	"slices"
	"strconv"
)

// FinishRows prepares the rows of one rollout, in order, for writing. It drops rows without
// a trained token, cuts each row after its last trained token, and sets ID, SampleIndex,
// IsLast and RolloutMaskSum for the remaining rows, and PromptLen where it is 0 or past the
// first trained token; sampled tokens are not prompt, even where the loss mask excludes
// them. Columns stay shared with the input, whose rows are not changed. It returns no rows
// when nothing is trained.
func FinishRows(rows []Sample) []Sample {
	var out []Sample
	var sum int64
	for _, s := range rows {
		first, last := trainedSpan(s.Weight)
		if first < 0 {
			continue
		}
		if cut, err := s.Slice(0, last+1); err == nil {
			s.Sequence = cut
		}
		if s.PromptLen < 1 || s.PromptLen > first {
			s.PromptLen = promptLen(&s.Sequence, first)
		}
		s.SampleIndex, s.IsLast = len(out), false
		s.ID = SampleID(s.Rollout, s.SampleIndex)
		sum += int64(s.Trained())
		out = append(out, s)
	}
	for i := range out {
		out[i].RolloutMaskSum = sum
		out[i].IsLast = i == len(out)-1
	}
	return out
}

// promptLen returns the number of tokens before the first sampled or trained one, at least
// 1.
func promptLen(seq *Sequence, trained int) int {
	sampled := func(f Flag) bool { return f&FlagSampled != 0 }
	if i := slices.IndexFunc(seq.Flags, sampled); i >= 0 {
		return max(1, min(i, trained))
	}
	return trained
}

// trainedSpan returns the index of the first and last trained token, −1 for none.
func trainedSpan(w []float32) (first, last int) {
	first, last = -1, -1
	for t, x := range w {
		if x > 0 {
			if first < 0 {
				first = t
			}
			last = t
		}
	}
	return first, last
}

// SampleID returns the id of row index of a rollout: "<rollout>#<index>".
func SampleID(rolloutID string, index int) string {
	return rolloutID + "#" + strconv.Itoa(index)
}
