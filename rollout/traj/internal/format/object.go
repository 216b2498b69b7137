package format

import (
	"bytes"
	"cmp"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Object builds a JSON object with keys in the given order.
type Object struct {
	b   []byte
	err error // the first error
}

// Raw adds a value that is already JSON.
func (o *Object) Raw(key string, v []byte) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, Quote(key)...), ':'), v...)
}

// Text adds a string.
func (o *Object) Text(key, s string) { o.Raw(key, Quote(s)) }

// Some adds a string unless it is empty.
func (o *Object) Some(key, s string) {
	if s != "" {
		o.Text(key, s)
	}
}

// Any adds v encoded by encoding/json; see Err.
func (o *Object) Any(key string, v any) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		o.err = cmp.Or[error](o.err, rollout.Errorf(rollout.KindInput, rollout.Where{Field: key}, "cannot be written: %w", err))
		return
	}
	o.Raw(key, b)
}

// Inner adds an object unless it is empty.
func (o *Object) Inner(key string, in *Object) {
	if o.err = cmp.Or(o.err, in.err); len(in.b) > 0 {
		o.Raw(key, in.End())
	}
}

// Err returns the error of the first value that could not be written, here or in an inner
// object.
func (o *Object) Err() error { return o.err }

// End closes the object and returns it.
func (o *Object) End() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	return append(o.b, '}')
}

// Array returns a JSON list of items, which are already JSON.
func Array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// renamed returns an object with one key renamed.
func renamed(v Value, from, to string) []byte {
	var o Object
	for key, x := range v.Members() {
		if key == from {
			key = to
		}
		o.Raw(key, x.Clone())
	}
	return o.End()
}
