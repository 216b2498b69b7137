package step

import (
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// Rows adapts a Sink to the interface that a pipeline writes to.
type Rows struct{ To Sink }

// Write passes a row on.
func (r Rows) Write(s rollout.Sample) error { return r.To.Row(spool.Row{Sample: s}) }

// WriteRuns passes a row given as runs on.
func (r Rows) WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	return r.To.Row(spool.Row{Sample: s, Lens: lens, Tokens: ids, Logprobs: logprobs})
}

// Writer writes files, as export.Writer and shard.Set do.
type Writer interface {
	Write(rollout.Sample) error
	WriteRuns(s rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error
	Close() error
	Abort() error
}

// Files is the Sink that writes to a Writer.
type Files struct{ Writer }

// Row writes a row.
func (f Files) Row(r spool.Row) error {
	if r.Lens != nil {
		return f.Writer.WriteRuns(r.Sample, r.Lens, r.Tokens, r.Logprobs)
	}
	return f.Writer.Write(r.Sample)
}

// Whole is a Sink for targets and formats that look at one entry per token. It refuses rows that
// are too long for that.
type Whole struct{ Sink }

// Row passes a row on, expanded to one entry per token.
func (w Whole) Row(r spool.Row) error {
	if err := r.CheckWhole(); err != nil && r.Lens != nil {
		return err
	}
	return w.Sink.Row(spool.Row{Sample: r.Whole()})
}

// Checked is a Sink that only checks rows.
type Checked struct{ *export.Checker }

// Row checks a row.
func (c Checked) Row(r spool.Row) error {
	if r.Lens != nil {
		return c.CheckRuns(r.Sample, r.Lens, r.Tokens, r.Logprobs)
	}
	return c.Check(&r.Sample)
}

// Close checks the last rollout.
func (c Checked) Close() error { return c.End() }

// Abort does nothing.
func (c Checked) Abort() error { return nil }
