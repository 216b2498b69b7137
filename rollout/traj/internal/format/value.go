package format

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Keep stores a copy of a value in Extra, Metadata or TemplateKwargs.
func Keep(extra *map[string]json.RawMessage, key string, v Value) { put(extra, key, v.Clone()) }

// KeepAny is Keep, except that it skips null and absent values.
func KeepAny(extra *map[string]json.RawMessage, key string, v Value) {
	if !v.IsNull() {
		Keep(extra, key, v)
	}
}

// KeepText stores a text in Extra or Metadata.
func KeepText(extra *map[string]json.RawMessage, key, s string) { put(extra, key, Quote(s)) }

func put(extra *map[string]json.RawMessage, key string, v json.RawMessage) {
	if *extra == nil {
		*extra = map[string]json.RawMessage{}
	}
	(*extra)[key] = v
}

// Drop removes keys that an importer has used.
func Drop(extra *map[string]json.RawMessage, keys ...string) {
	for _, k := range keys {
		delete(*extra, k)
	}
	if len(*extra) == 0 {
		*extra = nil
	}
}

// SetArguments sets the arguments of a call: a string as text, any other JSON value
// verbatim.
func SetArguments(c *rollout.ToolCall, v Value) {
	if s, ok := v.Text(); ok {
		c.Arguments, c.ArgumentsText = s, true
		return
	}
	c.Arguments = string(v.Clone())
}

// Quote returns s as a JSON string, without escaping HTML characters.
func Quote(s string) json.RawMessage {
	b, _ := jsonscan.Marshal(s) // strings cannot fail
	return b
}

// Number returns a JSON number, nil for anything else.
func Number(v Value) *float64 { return optional(v.Float()) }

// Boolean returns a JSON boolean, nil for anything else.
func Boolean(v Value) *bool { return optional(v.Bool()) }

// Text returns a JSON string, nil for anything else.
func Text(v Value) *string { return optional(v.Text()) }

// Temperature returns a JSON number as a sampling temperature, nil for anything else.
func Temperature(v Value) *float32 {
	f, ok := v.Float()
	return optional(float32(f), ok)
}

// Version returns a JSON integer of 0 or more as a policy version, nil for anything else.
func Version(v Value) *int32 {
	n, ok := v.Int()
	return optional(int32(n), ok && n >= 0 && n == int(int32(n)))
}

func optional[T any](x T, ok bool) *T {
	if !ok {
		return nil
	}
	return new(x) // &x would allocate even if ok is false
}

// Identifier returns a string or number as text, "" for anything else.
func Identifier(v Value) string {
	if v.Kind() == jsonscan.Number {
		return string(v.Raw())
	}
	return v.String()
}

// Shape describes a value for error texts.
func Shape(v Value) string {
	if v.Kind() != jsonscan.Object {
		return v.Kind().String()
	}
	var keys []string
	for k := range v.Members() {
		if len(keys) == 8 {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, strconv.Quote(k))
	}
	return "an object with keys " + strings.Join(keys, ", ")
}

// FirstID returns the first string or number under the keys, as text.
func FirstID(v Value, keys ...string) string {
	for _, k := range keys {
		if s := Identifier(v.Get(k)); s != "" {
			return s
		}
	}
	return ""
}

// Elements returns the items of a list, nil for anything else.
func Elements(v Value) []Value {
	var out []Value
	for _, x := range v.Items() {
		out = append(out, x)
	}
	return out
}

// PlainText returns a string, or the JSON text of any other value.
func PlainText(v Value) string {
	if s, ok := v.Text(); ok {
		return s
	}
	return string(v.Raw())
}
