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

// holdBytes is how much of a value is held in memory before its strings are set aside.
const holdBytes = 16 << 20

// asideFrom is the minimum length of a string or list of numbers that is set aside.
const asideFrom = 256

// aside records the strings that were set aside from a long value. If the stream is a plain
// file, they are read from it; otherwise they go to a temporary file.
type aside struct {
	plain io.ReaderAt // the stream, if it is a plain file

	list  []jsonscan.Away
	bytes int // their total length

	spill *os.File
	out   *bufio.Writer
	end   int64 // end of this value's strings in the temporary file
}

// reset drops the strings of the previous value.
func (a *aside) reset() {
	a.list, a.bytes = a.list[:0], 0
	if a.end > 0 {
		a.end = 0
		_, _ = a.spill.Seek(0, io.SeekStart) // an error recurs at the next write
		a.out.Reset(a.spill)
	}
}

// from returns the offset in the store of the next string, at an offset of the stream.
func (a *aside) from(offset int64) int64 {
	if a.plain != nil {
		return offset
	}
	return a.end
}

// put stores bytes of the stream.
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
		_ = os.Remove(f.Name()) // if the system allows it, a killed run leaves no file; otherwise close removes it
		a.spill, a.out = f, bufio.NewWriterSize(f, 256<<10)
	}
	n, err := a.out.Write(b)
	a.end += int64(n)
	return err
}

// store returns the reader of the strings set aside.
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

// sparse continues copy, setting long strings aside.
func (v *Values) sparse(s *span) error {
	for {
		if _, err := v.r.Peek(1); err != nil {
			return err
		}
		b, _ := v.r.Peek(v.r.Buffered())
		if q := bytes.IndexAny(b, `"[`); q >= 0 {
			b = b[:q+1]
		}
		quoted := s.quoted
		ended, err := v.take(s, b)
		if ended || err != nil {
			return err
		}
		switch {
		case quoted:
			continue
		case s.quoted:
			s.quoted = false
			err = v.setAside()
		case bytes.HasSuffix(b, []byte{'['}):
			var taken bool
			if taken, err = v.numbersAside(); taken {
				s.depth--
			}
		}
		if err != nil || s.depth == 0 && !s.scalar {
			return err
		}
	}
}

// numbersAside sets a list of numbers aside, whose opening bracket has been read; other
// lists, short ones, and those longer than the stream's buffer stay.
func (v *Values) numbersAside() (taken bool, err error) {
	for n := asideFrom; ; n *= 2 {
		b, _ := v.r.Peek(min(n, v.r.Size()))
		end, cut := jsonscan.NumbersEnd(b)
		if end == 0 && cut && len(b) == n && n < v.r.Size() {
			continue
		}
		if end < asideFrom {
			return false, nil
		}
		a := jsonscan.Away{At: len(v.buf) - 1, From: v.aside.from(v.offset), Len: end - 1}
		if err := v.keep(b[:a.Len]); err != nil {
			return false, err
		}
		v.skip(1)
		v.buf = append(v.buf, ']')
		v.aside.list = append(v.aside.list, a)
		return true, nil
	}
}

// keep sets b, the next bytes of the stream, aside.
func (v *Values) keep(b []byte) error {
	if len(v.buf)+v.aside.bytes+len(b) > v.max {
		return v.tooLong()
	}
	if err := v.aside.put(b); err != nil {
		return spillError(err)
	}
	v.skip(len(b))
	return nil
}

// setAside sets a string aside, whose opening quote has been read. A short string stays in
// the text.
func (v *Values) setAside() error {
	at := len(v.buf) - 1
	a := jsonscan.Away{At: at}
	b, _ := v.r.Peek(asideFrom)
	if n, closed, err := a.StringPart(b); closed && err == nil {
		v.buf = append(v.buf, b[:n+1]...)
		v.skip(n + 1)
		return nil
	}
	a = jsonscan.Away{At: at, From: v.aside.from(v.offset)}
	for {
		b, _ := v.r.Peek(v.r.Buffered())
		n, closed, err := a.StringPart(b)
		if e, ok := errors.AsType[*jsonscan.SyntaxError](err); ok {
			return rollout.Errorf(rollout.KindFormat, rollout.Where{Byte: rollout.At(int(v.offset) + e.Offset)}, "not JSON: %s", e.Msg)
		}
		left := len(b) - n
		if err := v.keep(b[:n]); err != nil {
			return err
		}
		if closed {
			v.skip(1)
			v.buf = append(v.buf, '"')
			v.aside.list = append(v.aside.list, a)
			return nil
		}
		// The remaining bytes are an incomplete character or escape.
		if _, err := v.r.Peek(left + 1); err != nil {
			return err
		}
	}
}
