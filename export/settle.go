package export

import "github.com/turnpack/turnpack/rollout"

// Settle prepares the rows of one rollout, in order, for writing: it leaves out
// rows without a trained token, cuts each row after its last one, and then sets
// what depends on the rows that remain: ID, SampleIndex, IsLast,
// RolloutMaskSum, and PromptLen where it is 0 or past the first trained token.
// Columns stay shared with the input, whose rows are not changed. It returns no
// rows when nothing is trained.
func Settle(rows []rollout.Sample) []rollout.Sample {
	var out []rollout.Sample
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
			s.PromptLen = first
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

// trainedSpan returns the first and the last trained token, −1 for none.
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
