package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// holdBytes is how much of a value is held in memory before its strings are set
// aside.
const holdBytes = 16 << 20

// asideFrom is the shortest string that is set aside.
const asideFrom = 256

// aside knows where the strings are that a long value is read without. A plain
// file holds them itself; those of any other stream go to a temporary file.
type aside struct {
	plain io.ReaderAt // the stream, when it is a plain file

	list  []jsonscan.Away
	bytes int // in them

	spill *os.File
	out   *bufio.Writer
	end   int64 // of what this value has in the temporary file
}

// reset forgets the strings of the value before.
func (a *aside) reset() {
	a.list, a.bytes = a.list[:0], 0
	if a.end > 0 {
		a.end = 0
		_, _ = a.spill.Seek(0, io.SeekStart) // a failure shows at the next write
		a.out.Reset(a.spill)
	}
}

// put keeps a part of a string.
func (a *aside) put(b []byte) error {
	a.bytes += len(b)
	if a.plain != nil {
		return nil
	}
	if a.spill == nil {
		f, err := os.CreateTemp("", "turnpack-text-*")
		if err != nil {
			return err
		}
		a.spill, a.out = f, bufio.NewWriterSize(f, 256<<10)
	}
	n, err := a.out.Write(b)
	a.end += int64(n)
	return err
}

// store is where the strings are read from.
func (a *aside) store() (io.ReaderAt, error) {
	if a.plain != nil || a.spill == nil {
		return a.plain, nil
	}
	if err := a.out.Flush(); err != nil {
		return nil, spillError(err)
	}
	return a.spill, nil
}

func spillError(err error) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{}, "a long value needs a temporary file for its strings: %w", err).
		WithFix("free space in the folder for temporary files, or unpack the stream into a file")
}

// close removes the temporary file.
func (a *aside) close() {
	if a.spill != nil {
		a.spill.Close()
		os.Remove(a.spill.Name())
	}
}

// sparse goes on with copy, but sets long strings aside.
func (v *Values) sparse(s *span) error {
	for {
		if _, err := v.r.Peek(1); err != nil {
			return err
		}
		b, _ := v.r.Peek(v.r.Buffered())
		if q := bytes.IndexByte(b, '"'); q >= 0 {
			b = b[:q+1]
		}
		quoted := s.quoted
		ended, err := v.take(s, b)
		if ended || err != nil {
			return err
		}
		if quoted || !s.quoted {
			continue
		}
		if err := v.setAside(); err != nil {
			return err
		}
		if s.quoted = false; s.depth == 0 {
			return nil
		}
	}
}

// setAside reads a string, the opening quote of which has been read. A short one
// stays in the text.
func (v *Values) setAside() error {
	at := len(v.buf) - 1
	a := jsonscan.Away{At: at}
	b, _ := v.r.Peek(asideFrom)
	if n, closed, err := a.StringPart(b); closed && err == nil {
		v.buf = append(v.buf, b[:n+1]...)
		v.skip(n + 1)
		return nil
	}
	a = jsonscan.Away{At: at, From: v.offset}
	if v.aside.plain == nil {
		a.From = v.aside.end
	}
	for {
		b, _ := v.r.Peek(v.r.Buffered())
		n, closed, err := a.StringPart(b)
		if e, ok := errors.AsType[*jsonscan.SyntaxError](err); ok {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Byte: rollout.At(int(v.offset) + e.Offset)}, "not JSON: %s", e.Msg)
		}
		if len(v.buf)+v.aside.bytes+n > v.max {
			return v.tooLong()
		}
		if err := v.aside.put(b[:n]); err != nil {
			return spillError(err)
		}
		v.skip(n)
		if closed {
			v.skip(1)
			v.buf = append(v.buf, '"')
			v.aside.list = append(v.aside.list, a)
			return nil
		}
		// What is left is less than a character or an escape.
		if _, err := v.r.Peek(len(b) - n + 1); err != nil {
			return err
		}
	}
}
