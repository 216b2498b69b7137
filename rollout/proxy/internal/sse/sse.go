// Package sse reads the events of an engine's reply and writes those of the proxy's.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// ErrLong is the error of an event beyond the bound.
var ErrLong = errors.New("an event of the stream is longer than is allowed")

// Reader reads the data of server-sent events. Event names, ids and comments are passed
// over: every engine says in the data what they say.
type Reader struct {
	r    *bufio.Reader
	max  int
	data []byte
	cr   bool // the line before ended with a carriage return
}

var buffers = sync.Pool{New: func() any { return &Reader{r: bufio.NewReaderSize(nil, 32<<10)} }}

// NewReader reads from r; an event has at most max bytes.
func NewReader(r io.Reader, max int) *Reader {
	x := buffers.Get().(*Reader)
	x.r.Reset(r)
	x.max, x.data, x.cr = max, x.data[:0], false
	return x
}

// Free gives the reader's memory to later ones. It must not be used after that.
func (r *Reader) Free() {
	r.r.Reset(nil)
	if cap(r.data) > 64<<10 {
		r.data = nil
	}
	buffers.Put(r)
}

// Next returns the data of the next event, valid until the following call. At the end of
// a stream it is io.EOF, or io.ErrUnexpectedEOF where that ends within an event.
func (r *Reader) Next() ([]byte, error) {
	r.data = r.data[:0]
	have := false
	for {
		line, err := r.line()
		if err != nil {
			if err == io.EOF && (have || len(line) > 0) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if len(line) == 0 {
			if have {
				return r.data[:len(r.data)-1], nil
			}
			continue
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
}

// line reads to the end of a line: \n, \r\n or \r. The line is valid until the next.
func (r *Reader) line() ([]byte, error) {
	var long []byte
	for {
		part, err := r.r.Peek(1)
		if err != nil {
			return long, err
		}
		if r.cr && part[0] == '\n' {
			r.r.Discard(1)
		}
		if r.cr {
			r.cr = false
			continue
		}
		part, _ = r.r.Peek(r.r.Buffered())
		n := bytes.IndexByte(part, '\n')
		if n < 0 {
			n = len(part)
		}
		if cr := bytes.IndexByte(part[:n], '\r'); cr >= 0 {
			n = cr
		}
		if n < len(part) {
			r.cr = part[n] == '\r'
			line := part[:n]
			if long != nil {
				line = append(long, line...)
			}
			if len(line) > r.max+8 {
				return nil, ErrLong
			}
			r.r.Discard(n + 1) // the bytes stay until the next read
			return line, nil
		}
		if len(long)+len(part) > r.max+8 {
			return nil, ErrLong
		}
		long = append(long, part...)
		r.r.Discard(len(part))
	}
}

// Append appends an event: its name, none = "", and its data, which has no line ends.
func Append(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	dst = append(append(dst, "data: "...), data...)
	return append(dst, "\n\n"...)
}
