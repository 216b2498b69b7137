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
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestSpeed) // fails for other levels only
	_, _ = w.Write(b)                              // a buffer takes all
	_ = w.Close()
	return out.Bytes()
}

// Read is what Bytes compressed; ok is false where that is damaged.
func Read(b []byte) (out []byte, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	out, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
	return out, err == nil
}
