package format

import (
	"bytes"
	"cmp"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Object is a JSON object with keys in the order given.
type Object struct {
	b   []byte
	err error // the first
}

// Raw adds a value that is JSON.
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

// Some adds a string that is not empty.
func (o *Object) Some(key, s string) {
	if s != "" {
		o.Text(key, s)
	}
}

// Any adds what encoding/json makes of v; see Err.
func (o *Object) Any(key string, v any) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		o.err = cmp.Or[error](o.err, rollout.Errorf(rollout.KindInput, rollout.Where{Field: key}, "cannot be written: %w", err))
		return
	}
	o.Raw(key, b)
}

// Inner adds an object that something was written to.
func (o *Object) Inner(key string, in *Object) {
	if o.err = cmp.Or(o.err, in.err); len(in.b) > 0 {
		o.Raw(key, in.End())
	}
}

// Err is the error of the first value that cannot be written, here or in an inner object.
func (o *Object) Err() error { return o.err }

// End closes the object and returns it.
func (o *Object) End() []byte {
	if len(o.b) == 0 {
		return []byte("{}")
	}
	return append(o.b, '}')
}

// Array is a JSON list of items that are JSON.
func Array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// renamed is an object with one key under another name.
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
