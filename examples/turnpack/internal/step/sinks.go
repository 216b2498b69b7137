package step

import (
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// Whole is a Sink of files that hold rows of tokens alone, which rows of very many do not
// go into.
type Whole struct{ Sink }

// WriteRuns refuses a row of very many tokens.
func (w Whole) WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	row := spool.Row{Sample: s, Lens: lens, Tokens: ids, Logprobs: logprobs}
	if err := row.CheckWhole(); err != nil {
		return err
	}
	return w.Write(row.Whole())
}

// Checked is the Sink of rows that are checked only.
type Checked struct{ *export.Checker }

// Write checks a row.
func (c Checked) Write(s rollout.Sample) error { return c.Check(&s) }

// WriteRuns checks a row given as runs.
func (c Checked) WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	return c.CheckRuns(s, lens, ids, logprobs)
}

// Close checks the last rollout.
func (c Checked) Close() error { return c.End() }

// Abort does nothing.
func (c Checked) Abort() error { return nil }
