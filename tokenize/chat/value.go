package chat

import (
	"errors"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Value is a JSON-like value passed to a template. The zero Value is null. Values are immutable, so conversations,
// renderings and goroutines can share them.
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

// Recorded returns v as recorded data: text that a template writes from it has a Field whose Path begins with /name.
// The text of other variables is scaffold.
func Recorded(name string, v Value) Value {
	return Value{locate(v.get(), rootField(name))}
}

// List returns a list of the items.
func List(items ...Value) Value {
	l := &value.List{Items: make([]value.Value, len(items))}
	for i, it := range items {
		l.Items[i] = it.get()
	}
	return Value{l}
}

// Object returns a dict with the members in order. Of equal keys the last value wins and takes the place of the
// first.
func Object(members ...Member) Value {
	d := value.NewDict(len(members))
	for _, m := range members {
		d.SetString(m.Key, m.Value.get())
	}
	return Value{d}
}

// ParseJSON reads one JSON text as Python does: key order is kept, of equal keys the last value wins, 1 is an int and
// 1.0 a float, integers have any size, NaN and Infinity are accepted. A lone surrogate escape becomes U+FFFD.
// Malformed text is a KindFormat error with its byte offset.
func ParseJSON(data []byte) (Value, error) { return parsed(py.ParseJSON(data)) }

// ParseLiterals is ParseJSON, but floats are written as spelled (1.50, 1e3) where Python would reformat them (1.5,
// 1000.0), so that sampled text keeps its spelling. They are equal to the same numbers otherwise.
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
