// Package packed compresses what a state holds of very many rollouts: names and numbers that
// mostly differ from the ones before by one, which take a fifth then.
package packed

import (
	"bytes"
	"compress/flate"
	"io"
)

// Bytes compresses b.
func Bytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return Write(func(w io.Writer) error { _, err := w.Write(b); return err })
}

// Write compresses what fill writes, which fails for what has no such form only.
func Write(fill func(io.Writer) error) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestSpeed) // fails for other levels only
	if fill(w) != nil {
		return nil
	}
	_ = w.Close() // a buffer takes all
	return out.Bytes()
}

// Reader reads what Bytes or Write compressed.
func Reader(b []byte) io.Reader { return flate.NewReader(bytes.NewReader(b)) }

// Read is what Bytes compressed; ok is false where that is damaged.
func Read(b []byte) (out []byte, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	out, err := io.ReadAll(Reader(b))
	return out, err == nil
}
