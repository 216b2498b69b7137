package sse_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/proxy/internal/sse"
)

func all(r io.Reader, max int) (out []string, err error) {
	s := sse.NewReader(r, max)
	for {
		data, err := s.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(data))
	}
}

func TestReader(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
		err  error
	}{
		{"data: a\n\ndata: b\n\n", []string{"a", "b"}, io.EOF},
		{"data: a\r\n\r\ndata:b\r\n\r\n", []string{"a", "b"}, io.EOF},
		{"data: a\r\rdata: b\r\r", []string{"a", "b"}, io.EOF},
		{": ping\n\nevent: x\nid: 7\ndata: a\ndata: b\n\n\n\n", []string{"a\nb"}, io.EOF},
		{"data\n\ndata:\n\n", []string{"", ""}, io.EOF},
		{"database: x\n\n", nil, io.EOF},
		{"data: a\n\ndata: b\n", []string{"a"}, io.ErrUnexpectedEOF},
		{"data: a\n\ndata: b", []string{"a"}, io.ErrUnexpectedEOF},
		{"data: a\n\nda", []string{"a"}, io.ErrUnexpectedEOF},
		{"data: " + strings.Repeat("x", 100) + "\n\n", nil, sse.ErrLong},
		{"data: " + strings.Repeat("x", 40) + "\ndata: " + strings.Repeat("x", 40) + "\n\n", nil, sse.ErrLong},
		{": " + strings.Repeat("x", 100), nil, sse.ErrLong},
		{"", nil, io.EOF},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			got, err := all(r, 64)
			require.Equal(t, c.want, got, "%q", c.in)
			require.ErrorIs(t, err, c.err, "%q", c.in)
		}
	}
}

// FuzzReader: nothing panics, the chunking of reads changes nothing, and written events are read back.
func FuzzReader(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\n: x\n\ndata: b\rdata: c\n\n"))
	f.Add([]byte("event: x\ndata:\n\ndata\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := all(bytes.NewReader(in), 1<<10)
		again, err2 := all(iotest.OneByteReader(bytes.NewReader(in)), 1<<10)
		require.Equal(t, got, again)
		require.Equal(t, err, err2)
		var out []byte
		for _, data := range got {
			if strings.ContainsAny(data, "\r\n") {
				return
			}
			out = sse.Append(out, "n", []byte(data))
		}
		back, err := all(bytes.NewReader(out), 1<<10)
		require.Equal(t, io.EOF, err)
		require.Equal(t, got, back)
	})
}
