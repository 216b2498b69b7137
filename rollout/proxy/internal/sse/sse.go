// Package sse reads server-sent events of an engine's reply and writes those of the proxy's replies.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// ErrLong is the error of an event longer than the maximum.
var ErrLong = errors.New("an event of the stream is longer than is allowed")

// Reader reads the data of server-sent events. Event names, ids and comments are skipped: every engine repeats
// them in the data.
type Reader struct {
	lines *bufio.Scanner
	room  []byte // buffer for lines
	max   int
	data  []byte
	cr    bool // the previous line ended with a carriage return
}

var readers = sync.Pool{New: func() any { return &Reader{room: make([]byte, 32<<10)} }}

// NewReader returns a reader of r; an event has at most max bytes.
func NewReader(r io.Reader, max int) *Reader {
	x := readers.Get().(*Reader)
	x.lines, x.max, x.cr = bufio.NewScanner(r), max, false
	x.lines.Buffer(x.room, max+16) // line refuses a long line earlier
	x.lines.Split(x.line)
	return x
}

// Free releases the reader's memory for reuse. The reader must not be used afterwards.
func (r *Reader) Free() {
	if r.lines = nil; cap(r.data) > 64<<10 {
		r.data = nil
	}
	readers.Put(r)
}

// Next returns the data of the next event, valid until the following call. At the end of a stream it returns
// io.EOF, or io.ErrUnexpectedEOF if the stream ends within an event.
func (r *Reader) Next() ([]byte, error) {
	r.data = r.data[:0]
	have := false
	for r.lines.Scan() {
		line := r.lines.Bytes()
		if len(line) == 0 && have {
			return r.data[:len(r.data)-1], nil
		}
		if value, ok := bytes.CutPrefix(line, []byte("data")); ok && (len(value) == 0 || value[0] == ':') {
			value = bytes.TrimPrefix(bytes.TrimPrefix(value, []byte(":")), []byte(" "))
			if len(r.data)+len(value) > r.max {
				return nil, ErrLong
			}
			r.data = append(append(r.data, value...), '\n')
			have = true
		}
	}
	switch err := r.lines.Err(); {
	case err != nil:
		return nil, err
	case have:
		return nil, io.ErrUnexpectedEOF
	}
	return nil, io.EOF
}

// line is a bufio.SplitFunc for lines that end with \n, \r\n or \r. A line that ends with \r is returned at
// once, without waiting for a \n.
func (r *Reader) line(data []byte, atEOF bool) (advance int, line []byte, err error) {
	from := 0
	if r.cr && len(data) > 0 && data[0] == '\n' {
		from = 1
	}
	line = data[from:]
	n := bytes.IndexByte(line, '\n')
	if cr := bytes.IndexByte(line[:max(n, 0)], '\r'); cr >= 0 {
		n = cr
	} else if n < 0 {
		n = bytes.IndexByte(line, '\r')
	}
	switch {
	case n > r.max+8, n < 0 && len(line) > r.max+8:
		return 0, nil, ErrLong
	case n >= 0:
		r.cr = line[n] == '\r'
		return from + n + 1, line[:n], nil
	case atEOF && len(line) > 0:
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

// Append appends an event: its name, "" for none, and its data, which must not contain line ends.
func Append(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	dst = append(append(dst, "data: "...), data...)
	return append(dst, "\n\n"...)
}
