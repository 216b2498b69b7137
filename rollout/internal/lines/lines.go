// Package lines reads the lines of dumps.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/turnpack/turnpack/rollout"
)

// Line is one line of a text stream.
type Line struct {
	Text   []byte // without the line ending; valid until the next call
	Number int    // 1-based
	Offset int64  // byte offset of Text in the stream
	Ended  bool   // a newline followed it
}

// Lines reads lines of bounded length. A byte order mark at the start of the
// stream and a carriage return before a newline are not part of a line; empty
// lines are returned like others. It is not safe for concurrent use.
type Lines struct {
	r      *bufio.Reader
	max    int
	number int
	offset int64
	buf    []byte
	err    error
}

// DefaultBytes is the default maximum length of a line.
const DefaultBytes = 1 << 30

var byteOrderMark = []byte("\xef\xbb\xbf")

// New returns a reader of lines up to max bytes.
func New(r io.Reader, max int) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 256<<10), max: max}
}

// Failed reports whether the underlying reader failed, which ends the stream.
func (l *Lines) Failed() bool { return l.err != nil && l.err != io.EOF }

// Next returns the next line, and io.EOF after the last one. A line that is too long is skipped and reported as
// a rollout.KindLimit error; the next call continues after it. An error of the underlying reader is returned
// after the lines before it.
func (l *Lines) Next() (Line, error) {
	if l.err != nil {
		return Line{}, l.err
	}
	if l.number == 0 {
		if b, _ := l.r.Peek(len(byteOrderMark)); bytes.Equal(b, byteOrderMark) {
			n, _ := l.r.Discard(len(byteOrderMark))
			l.offset = int64(n)
		}
	}
	l.number++
	line := Line{Number: l.number, Offset: l.offset}
	l.buf = l.buf[:0]
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		l.offset += int64(len(part))
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		switch {
		case tooLong:
		case len(l.buf)+len(part)-1 > l.max: // one more for a carriage return
			tooLong = true
		case ended && len(l.buf) == 0:
			line.Text = part // a view of the reader's buffer, no copy
		default:
			l.buf = append(l.buf, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line.Ended = ended
		if err != nil {
			if err != io.EOF {
				l.err = err
				if _, located := errors.AsType[*rollout.Error](err); !located {
					l.err = rollout.Errorf(rollout.KindInput, rollout.Where{Line: line.Number}, "the line cannot be read: %w", err)
				}
				return line, l.err
			}
			l.err = io.EOF
			if line.Offset == l.offset {
				return Line{}, io.EOF
			}
		}
		break
	}
	if line.Text == nil {
		line.Text = l.buf
	}
	if line.Ended && bytes.HasSuffix(line.Text, []byte{'\r'}) {
		line.Text = line.Text[:len(line.Text)-1]
	}
	if tooLong || len(line.Text) > l.max {
		return line, rollout.Errorf(rollout.KindLimit, rollout.Where{Line: line.Number}, "the line is longer than %d bytes", l.max).
			WithFix("raise Limits.LineBytes or split the record")
	}
	return line, nil
}
