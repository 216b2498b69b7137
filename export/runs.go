package export

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// hugeRow is the number of tokens from which a run-length encoded row becomes a row group of
// its own.
const hugeRow = 1 << 18

// WriteRuns is Write for a row with run-length encoded columns. Entry i of a per-token column
// of s covers lens[i] tokens, which agree in all columns; the first run is a single token. ids
// and logprobs (nil if s has none) hold one value per token; the writer keeps neither. Prompt
// lengths and sums in s count tokens. The file is the same as with Write, except that a row of
// more than 262,144 tokens becomes a row group of its own. Writing such a row takes little more
// than twice the memory of its ids in Parquet; in Arrow it takes the memory of its columns.
func (w *Writer) WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	return w.ifOpen(&s, func() error { return w.writeRuns(&s, lens, ids, logprobs) })
}

// CheckRuns is Check for a row in the form that Writer.WriteRuns takes.
func (c *Checker) CheckRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	trained, ok, err := c.runs(&s, lens, ids, logprobs)
	if err != nil {
		return err
	}
	if !ok {
		whole := spool.Whole(s, lens, ids, logprobs)
		return c.Check(&whole)
	}
	c.trained = trained
	return c.order.add(&s, trained)
}

// runs applies the single-row rules to a run-length encoded row. If ok is false, the caller
// must check the row again with one entry per token, which locates the fault.
func (c *Checker) runs(s *rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) (trained int, ok bool, err error) {
	if err := checkRuns(s, lens, ids, logprobs); err != nil {
		return 0, false, err
	}
	for i, x := range s.Weight {
		if x > 0 {
			trained += int(lens[i])
		}
	}
	prompt := s.PromptLen
	s.PromptLen = runsOf(lens, prompt)
	_, err = c.checkRow(s)
	s.PromptLen = prompt
	if err == nil {
		tokens := rollout.Sample{ID: s.ID, Sequence: rollout.Sequence{IDs: ids, Identity: s.Identity}}
		err = checkTokens(&tokens, Columns{})
	}
	return trained, err == nil && (!c.columns.Logprobs || sampled(s, lens, logprobs)), nil
}

func (w *Writer) writeRuns(s *rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	newGroup, newRollout := w.check.order.begins(s)
	trained, ok, err := w.check.runs(s, lens, ids, logprobs)
	if err != nil {
		return err
	}
	if !ok || len(lens) > len(ids)/4 {
		whole := spool.Whole(*s, lens, ids, logprobs)
		return w.write(&whole)
	}
	if err := w.check.order.add(s, trained); err != nil {
		return err
	}
	huge := len(ids) > hugeRow*w.growth()
	if huge {
		if err := w.flush(); err != nil {
			return err
		}
		w.buf = &buffer{}
	}
	if err := w.take(s, &tokens{lens, ids, logprobs}, trained, newGroup, newRollout); err != nil || !huge {
		return err
	}
	defer func() { w.buf = &buffer{} }()
	return w.flush()
}

// checkRuns checks that the lengths of the parts of a row agree.
func checkRuns(s *rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	n, bad := 0, len(lens) != s.Len() || len(lens) == 0 || len(lens) > 0 && lens[0] != 1 || (logprobs == nil) != (s.Logprob == nil)
	for _, k := range lens {
		bad = bad || k < 1 || int(k) > len(ids)
		n += int(k)
	}
	if bad || n != len(ids) || logprobs != nil && len(logprobs) != n {
		return refuse(s, col.InputIDs, ruleAligned, -1, "give a length for each entry of the columns, 1 for the first, that add up to the ids",
			"%d runs, %d lengths, %d ids and %d log probabilities do not fit", s.Len(), len(lens), len(ids), len(logprobs))
	}
	return nil
}

// runsOf returns the number of runs that the first tokens span.
func runsOf(lens []int32, tokens int) int {
	for i, n := range lens {
		if tokens <= 0 {
			return i
		}
		tokens -= int(n)
	}
	return len(lens) + max(0, tokens)
}

// sampled reports whether the log probabilities of all trained tokens are finite and at most 0.
func sampled(s *rollout.Sample, lens []int32, logprobs []float32) bool {
	at := 0
	for i, n := range lens {
		part := logprobs[at : at+int(n)]
		at += int(n)
		if s.Weight[i] > 0 && slices.ContainsFunc(part, func(lp float32) bool { return !(lp <= 0 && lp >= -math.MaxFloat32) }) {
			return false
		}
	}
	return true
}
