package source

import (
	"bytes"
	"io"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// samplesKey is the member of a top-level object whose elements are separate records: an
// evaluation log keeps all its samples in one object, which can be larger than memory.
const samplesKey = `"samples"`

// headKeys must come before samplesKey; any other object is read whole.
var headKeys = [][]byte{[]byte(`"version"`), []byte(`"eval"`)}

// object reads the top-level object at the start of the stream. It returns the whole
// object. In a log, it stops at the list of samples and returns the object so far, with an
// empty list in its place; the samples follow as elements.
func (v *Values) object(out Value) (Value, error) {
	v.skip(1)
	v.buf = append(v.buf, '{')
	return v.members(out)
}

// members reads the rest of the object whose opening bracket, and perhaps first members,
// are in the buffer.
func (v *Values) members(out Value) (Value, error) {
	for first := len(v.buf) == 1; ; first = false {
		c, err := v.space()
		if err != nil {
			return v.cut(out, err)
		}
		if c == '}' {
			v.buf = append(v.buf, '}')
			v.skip(1)
			out.Text, out.Ended = v.buf, true
			return out, nil
		}
		if !first {
			if c != ',' {
				return v.rest(out) // broken: the parser reports how
			}
			v.buf = append(v.buf, ',')
			v.skip(1)
			if c, err = v.space(); err != nil {
				return v.cut(out, err)
			}
		}
		key := len(v.buf)
		if c != '"' {
			return v.rest(out)
		}
		if err := v.copy(); err != nil {
			return v.cut(out, err)
		}
		name := v.buf[key:]
		if c, err = v.space(); err != nil {
			return v.cut(out, err)
		}
		if c != ':' {
			return v.rest(out)
		}
		isSamples := string(name) == samplesKey && bytes.Contains(v.buf, headKeys[0]) && bytes.Contains(v.buf, headKeys[1])
		v.buf = append(v.buf, ':')
		v.skip(1)
		if c, err = v.space(); err != nil {
			return v.cut(out, err)
		}
		if isSamples && c == '[' {
			v.buf = append(v.buf, "[]}"...)
			v.skip(1)
			v.list, v.tail = true, true
			out.Text, out.Ended = v.buf, true
			return out, nil
		}
		if err := v.copy(); err != nil {
			return v.cut(out, err)
		}
	}
}

// copy appends the next value of the stream to the buffer.
func (v *Values) copy() error {
	var s span
	for {
		if _, err := v.r.Peek(1); err != nil {
			return err
		}
		b, _ := v.r.Peek(v.r.Buffered())
		if ended, err := v.take(&s, b); ended || err != nil {
			return err
		}
	}
}

// take appends the bytes of b that belong to the value, and reports whether the value ends
// in b.
func (v *Values) take(s *span, b []byte) (ended bool, err error) {
	n := s.end(b)
	if ended = n > 0; !ended {
		n = len(b)
	}
	if len(v.buf)+n > v.max {
		return false, v.tooLong()
	}
	if len(v.buf)+n > cap(v.buf) {
		v.buf = slices.Grow(v.buf, max(n, len(v.buf))) // append alone would grow by a quarter
	}
	v.buf = append(v.buf, b[:n]...)
	v.skip(n)
	return ended, nil
}

func (v *Values) tooLong() error {
	return v.fail(rollout.KindLimit, "one value is longer than %d bytes", v.max).WithFix("raise Limits.ValueBytes")
}

// cut returns an object that ended early: its text so far.
func (v *Values) cut(out Value, err error) (Value, error) {
	if err != io.EOF {
		return out, v.unreadable(err)
	}
	out.Text = v.buf
	return out, nil
}

// rest appends the remainder of a broken object, so that the parser can report the fault
// and its place.
func (v *Values) rest(out Value) (Value, error) {
	for {
		if _, err := v.r.Peek(1); err != nil {
			break
		}
		b, _ := v.r.Peek(v.r.Buffered())
		if len(v.buf)+len(b) > v.max {
			return out, v.tooLong()
		}
		v.buf = append(v.buf, b...)
		v.skip(len(b))
	}
	out.Text = v.buf
	return out, nil
}
