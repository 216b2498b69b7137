package format

import (
	"bytes"
	"encoding/json"

	"github.com/turnpack/turnpack/rollout"
)

// Object is a JSON object with keys in the order given.
type Object struct{ b []byte }

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

// Any adds what encoding/json makes of v.
func (o *Object) Any(key string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: key}, "cannot be written: %w", err)
	}
	o.Raw(key, bytes.TrimSpace(b.Bytes()))
	return nil
}

// Empty reports whether nothing was written.
func (o *Object) Empty() bool { return len(o.b) == 0 }

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
