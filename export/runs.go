package export

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// hugeRow is the length of a row that is a row group of its own where it comes as runs.
const hugeRow = 1 << 18

// WriteRuns is Write for a row whose columns are runs: those of s have one entry for
// each run of tokens that are alike in them, the first token a run by itself, and lens
// holds the lengths of the runs. ids and logprobs, nil where s has none, are those of
// the tokens; the writer keeps neither. Prompt lengths and sums of s count
// tokens. The file is that of Write, but that a row of over 262,144 tokens is a row
// group of its own: a Parquet file gets it in memory of little more than twice its ids,
// an Arrow file in that of its columns.
func (w *Writer) WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	return w.ifOpen(&s, func() error { return w.writeRuns(&s, lens, ids, logprobs) })
}

// CheckRuns is Check for a row given as Writer.WriteRuns takes it.
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

// runs checks what concerns one row, of which the rules are the same for a run as for a
// token. ok is false where the row is to be checked with an entry for each token, which
// locates what is at fault.
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
	_, err = c.alone(s)
	s.PromptLen = prompt
	if err == nil {
		tokens := rollout.Sample{ID: s.ID, Sequence: rollout.Sequence{IDs: ids, Identity: s.Identity}}
		err = checkTokens(&tokens, Columns{})
	}
	return trained, err == nil && (!c.columns.Logprobs || sampled(s, lens, logprobs)), nil
}

func (w *Writer) writeRuns(s *rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	newGroup := w.check.order.open == nil || w.check.order.group != s.Group
	newRollout := w.check.order.open == nil || w.check.order.open.Rollout != s.Rollout
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
	huge := len(ids) > hugeRow*w.grown()
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

// checkRuns states that the parts of a row fit.
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

// runsOf is the number of runs that hold the first tokens.
func runsOf(lens []int32, tokens int) int {
	for i, n := range lens {
		if tokens <= 0 {
			return i
		}
		tokens -= int(n)
	}
	return len(lens) + max(0, tokens)
}

// sampled reports whether the log probabilities of trained tokens are some.
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
