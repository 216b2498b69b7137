package jsonl

import (
	"io"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Write writes r to w as one line with a single call of w.Write; wrap a file in a
// bufio.Writer. If r cannot be written, w gets no bytes.
func Write(w io.Writer, r *rollout.Rollout) error {
	line, err := Append(nil, r)
	if err != nil {
		return err
	}
	if w == nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "expected a stream to write to, found nil")
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
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
	size := 1 << 10
	for i := range r.Messages {
		size += len(r.Messages[i].Content)
	}
	e := &encoder{b: slices.Grow(dst, size), where: rollout.Where{Rollout: r.ID}}
	rolloutObject.put(e, r, "")
	return e.b, e.err
}
