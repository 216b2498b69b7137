package jsonl

import (
	"io"

	"github.com/turnpack/turnpack/rollout"
)

// Writer writes native rollout JSONL. It is not safe for concurrent use.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter returns a writer of native JSONL. Each Write of a rollout is one
// Write of w; wrap a file in a bufio.Writer.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one rollout as a line. A rollout that cannot be written leaves
// nothing in the file.
func (w *Writer) Write(r *rollout.Rollout) error {
	if w.w == nil {
		return zeroValue("jsonl.Writer", "NewWriter")
	}
	var err error
	if w.buf, err = Append(w.buf[:0], r); err != nil {
		return err
	}
	w.buf = append(w.buf, '\n')
	if _, err := w.w.Write(w.buf); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "the line cannot be written: %w", err)
	}
	return nil
}

// Append appends r as one line of native JSONL, without the newline. Keys
// come in a fixed order and those of Extra sorted, so equal rollouts give equal
// bytes. It refuses what JSON cannot hold (text that is not UTF-8, numbers that
// are not finite) with a located KindInput error.
func Append(dst []byte, r *rollout.Rollout) ([]byte, error) {
	if r == nil {
		return dst, r.Validate()
	}
	e := &encoder{b: dst, where: rollout.Where{Rollout: r.ID}}
	rolloutObject.put(e, r, "")
	return e.b, e.err
}
