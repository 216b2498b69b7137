package chat

import (
	"errors"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Value is a JSON-like value handed to a template. The zero Value is null.
// Values never change, so they can be shared between conversations, renderings
// and goroutines.
type Value struct{ v value.Value }

func (v Value) get() value.Value {
	if v.v == nil {
		return value.Nil
	}
	return v.v
}

// Member is one entry of an Object.
type Member struct {
	Key   string
	Value Value
}

// Null returns the null value, Python's None.
func Null() Value { return Value{} }

// String returns a string.
func String(s string) Value { return Value{&value.Str{S: s}} }

// Bool returns true or false.
func Bool(b bool) Value { return Value{value.NewBool(b)} }

// Int returns an integer.
func Int(i int64) Value { return Value{value.NewInt(i)} }

// Float returns a floating point number.
func Float(f float64) Value { return Value{&value.Float{V: f}} }

// Recorded returns v as recorded data: what a template writes of it has a Field
// with a Path of /name, where the text of other variables counts as scaffold.
func Recorded(name string, v Value) Value {
	l := locator(true)
	return Value{l.value(v.get(), l.root(name))}
}

// List returns a list of the items.
func List(items ...Value) Value {
	l := &value.List{Items: make([]value.Value, len(items))}
	for i, it := range items {
		l.Items[i] = it.get()
	}
	return Value{l}
}

// Object returns a dict with the members in their order; of equal keys the last
// value counts, at the place of the first.
func Object(members ...Member) Value {
	d := value.NewDict(len(members))
	for _, m := range members {
		d.SetString(m.Key, m.Value.get())
	}
	return Value{d}
}

// ParseJSON reads one JSON text as Python does: key order is kept, of equal
// keys the last value counts, 1 is an int and 1.0 a float, integers have any
// size, NaN and Infinity are accepted. A lone surrogate escape becomes U+FFFD.
// Malformed text is a KindFormat error with its byte offset.
func ParseJSON(data []byte) (Value, error) { return parsed(py.ParseJSON(data)) }

// ParseLiterals is ParseJSON whose floats are written as they are spelled (1.50, 1e3)
// where Python would write them anew (1.5, 1000.0): what a policy sampled keeps its
// spelling. In all else they are the same numbers.
func ParseLiterals(data []byte) (Value, error) { return parsed(py.ParseLiterals(data)) }

func parsed(v value.Value, err error) (Value, error) {
	if err != nil {
		var where rollout.Where
		if je, ok := errors.AsType[*jsonscan.SyntaxError](err); ok {
			where.Byte = rollout.At(je.Offset)
		}
		return Value{}, rollout.Errorf(rollout.KindFormat, where, "malformed JSON: %w", err)
	}
	return Value{v}, nil
}
