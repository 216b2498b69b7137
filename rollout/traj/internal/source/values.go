package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/internal/lines"
)

// Value is the text of one JSON value in a stream.
type Value struct {
	Text   []byte // valid until the next call
	Line   int    // 1-based line on which it begins
	Offset int64  // byte offset in the stream
	InList bool   // an element of the list that the stream consists of
	Begins bool   // a list began or ended before it, so it does not continue the previous values
	Ended  bool   // bytes follow it, so it is not cut off

	Given []jsonscan.Given // texts of a table's row that were left out of Text
}

// EndsList reports whether the stream ends inside v, a list element. An error in v is then
// the only error of the rest.
func (v Value) EndsList() bool {
	return v.InList && !v.Ended && len(v.Text) > 0 && (v.Text[0] == '{' || v.Text[0] == '[' || v.Text[0] == '"')
}

// Values splits a stream into JSON values without parsing them: the lines of JSONL, the
// elements of one big list, or one value over many lines. One value is in memory at a time.
type Values struct {
	Empty bool // the stream has no bytes

	r     *bufio.Reader
	max   int
	lines *lines.Lines // set in line mode

	line   int
	offset int64
	list   bool // inside a list
	tail   bool // the list is a member of an object whose rest follows
	closed bool // a list has ended, so only lists and objects may follow
	buf    []byte
	err    error
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// NewValues examines the start of r and picks the mode. lined means that the name promises
// JSONL, which is believed unless the first line shows otherwise. A value has at most max
// bytes; 0 means 1 GiB.
func NewValues(r io.Reader, lined bool, max int) (*Values, error) {
	v := &Values{r: bufio.NewReaderSize(r, 256<<10), max: cmp.Or(max, lines.DefaultBytes), line: 1}
	_, err := v.r.Peek(1)
	v.Empty = err == io.EOF
	if lined && !v.opensBare() || v.firstLineIsWhole() {
		v.lines = lines.New(v.r, v.max)
		return v, nil
	}
	if b, _ := v.r.Peek(len(byteOrderMark)); bytes.Equal(b, byteOrderMark) {
		v.skip(len(byteOrderMark))
	}
	if _, err := v.space(); err != nil && err != io.EOF {
		return nil, err
	}
	return v, nil
}

// Lined reports whether each line is a value, so that reading can continue after a broken
// one.
func (v *Values) Lined() bool { return v.lines != nil }

// opensBare reports whether the first line has only opening brackets, as in pretty-printed
// JSON and never in JSONL.
func (v *Values) opensBare() bool {
	b, _ := v.r.Peek(4 << 10)
	b = bytes.TrimLeft(bytes.TrimPrefix(b, byteOrderMark), " \t\r\n")
	line, _, ended := bytes.Cut(b, []byte{'\n'})
	line = bytes.TrimSpace(line)
	return ended && len(line) > 0 && len(bytes.Trim(line, "[{ \t")) == 0
}

// lineLook is how far the end of a first line that begins an object is searched. A longer
// line is read as an object, which gives the same value, but reading cannot continue after
// a broken one.
const lineLook = 16 << 20

// firstLineIsWhole reports whether the stream is JSONL: the brackets of the first line
// balance, or it starts no object or list. A list counts as a line only if another list
// follows, since a file that is one list can be one very long line.
func (v *Values) firstLineIsWhole() bool {
	for n := 4 << 10; ; n *= 2 {
		b, err := v.r.Peek(n)
		full := err != nil || n >= v.r.Size()
		b = bytes.TrimLeft(bytes.TrimPrefix(b, byteOrderMark), " \t\r\n")
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		rest = bytes.TrimLeft(rest, " \t\r\n")
		switch {
		case len(b) == 0 && full:
			return false
		case len(b) == 0:
		case b[0] == '[':
			if ended && len(rest) > 0 || full {
				return bytes.HasPrefix(rest, []byte{'['}) && new(span).end(line) > 0
			}
		case b[0] != '{' || err != nil && !ended: // not an object, or the file is a single line
			return true
		case ended:
			return new(span).end(line) > 0
		case n >= lineLook:
			return false
		case full:
			v.r = bufio.NewReaderSize(v.r, lineLook)
		}
	}
}

func (v *Values) skip(n int) {
	b, _ := v.r.Peek(n)
	v.line += bytes.Count(b, []byte{'\n'})
	n, _ = v.r.Discard(n)
	v.offset += int64(n)
}

// space skips white space and returns the next byte without consuming it.
func (v *Values) space() (byte, error) {
	for {
		b, err := v.r.Peek(1)
		if err != nil {
			if err == io.EOF {
				return 0, io.EOF
			}
			return 0, v.unreadable(err)
		}
		if c := b[0]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c, nil
		}
		v.skip(1)
	}
}

// Failed reports whether no value can follow the last error.
func (v *Values) Failed() bool {
	if v.lines != nil {
		return v.lines.Failed()
	}
	return v.err != nil && v.err != io.EOF
}

// Next returns the next value, or io.EOF at the end. In line mode other errors are about
// one line and the next call continues; otherwise they are final.
func (v *Values) Next() (Value, error) {
	if v.err != nil {
		return Value{}, v.err
	}
	if v.lines == nil {
		out, err := v.next()
		v.err = err
		return out, err
	}
	for {
		l, err := v.lines.Next()
		if err != nil {
			return Value{Line: l.Number, Offset: l.Offset}, err
		}
		if len(bytes.TrimSpace(l.Text)) > 0 {
			return Value{Text: l.Text, Line: l.Number, Offset: l.Offset, Ended: l.Ended}, nil
		}
	}
}

func (v *Values) fail(kind rollout.Kind, format string, args ...any) *rollout.Error {
	return rollout.Errorf(kind, rollout.Where{Line: v.line, Byte: rollout.At(int(v.offset))}, format, args...)
}

// unreadable returns a stream error with a kind and a place; an Error is returned
// unchanged.
func (v *Values) unreadable(err error) error {
	if _, ok := errors.AsType[*rollout.Error](err); ok {
		return err
	}
	return v.fail(rollout.KindInput, "cannot be read: %w", err)
}

func (v *Values) next() (Value, error) {
	begins := false
	c, err := v.space()
	for err == nil && (c == '[' && !v.list || (c == ',' || c == ']') && v.list) {
		v.skip(1)
		switch c {
		case '[':
			v.list, begins = true, true
		case ']':
			v.list, v.closed, begins = false, true, true
			if v.tail {
				if err := v.skipTail(); err != nil {
					return Value{}, err
				}
			}
		case ',':
			if next, err := v.space(); err == nil && (next == ',' || next == ']') {
				return Value{}, v.fail(rollout.KindFormat, "expected a value, found %q", next)
			}
		}
		c, err = v.space()
	}
	switch {
	case err == io.EOF && v.list:
		return Value{}, v.fail(rollout.KindFormat, "the list is cut off: expected a value, ',' or ']', found the end").WithFix("fetch the file again")
	case err != nil:
		return Value{}, err
	case v.closed && !v.list && c != '{':
		return Value{}, v.fail(rollout.KindFormat, "expected the end after the list, found %q", c)
	}
	out := Value{Line: v.line, Offset: v.offset, InList: v.list, Begins: begins}
	v.buf = v.buf[:0]
	if c == '{' && !v.list {
		return v.object(out)
	}
	if err := v.copy(); err != nil {
		return v.cut(out, err)
	}
	out.Text, out.Ended = v.buf, true
	return out, nil
}

// skipTail skips the members after the samples, or returns their error.
func (v *Values) skipTail() error {
	v.tail = false
	v.buf = append(v.buf[:0], `{"samples":[]`...)
	rest, err := v.members(Value{})
	if err == nil && !rest.Ended {
		err = v.fail(rollout.KindFormat, "the object is cut off after its samples").WithFix("fetch the file again")
	}
	return err
}

// span finds the end of a JSON value by its brackets and quotes.
type span struct {
	depth  int
	quoted bool
	escape bool
	scalar bool
}

// end returns how many bytes of b belong to the value, 0 if it continues after b.
func (s *span) end(b []byte) int {
	for i, c := range b {
		switch {
		case s.escape:
			s.escape = false
		case s.quoted && c == '"':
			if s.quoted = false; s.depth == 0 {
				return i + 1
			}
		case s.quoted:
			s.escape = c == '\\'
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.scalar || s.depth == 0 {
				return max(i, 1)
			}
			if s.depth--; s.depth == 0 {
				return i + 1
			}
		case c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t':
			if s.scalar {
				return i
			}
		default:
			s.scalar = s.scalar || s.depth == 0
		}
	}
	return 0
}
