package format

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

// Keep puts a copy of a value into Extra, Metadata or TemplateKwargs.
func Keep(extra *map[string]json.RawMessage, key string, v Value) { put(extra, key, v.Clone()) }

// KeepAny is Keep but for null and absent values.
func KeepAny(extra *map[string]json.RawMessage, key string, v Value) {
	if !v.IsNull() {
		Keep(extra, key, v)
	}
}

// KeepText puts a text into Extra or Metadata.
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

// SetArguments gives a call its arguments: text as it is written, or any JSON value.
func SetArguments(c *rollout.ToolCall, v Value) {
	if s, ok := v.Text(); ok {
		c.Arguments, c.ArgumentsText = s, true
		return
	}
	c.Arguments = string(v.Clone())
}

// Quote is s as a JSON string, with HTML characters as they are.
func Quote(s string) json.RawMessage {
	b, _ := jsonscan.Marshal(s) // a string has no errors
	return b
}

// Number is a JSON number, nil of anything else.
func Number(v Value) *float64 { return optional(v.Float()) }

// Boolean is a JSON truth value, nil of anything else.
func Boolean(v Value) *bool { return optional(v.Bool()) }

// Text is a JSON string, nil of anything else.
func Text(v Value) *string { return optional(v.Text()) }

// Temperature is a JSON number as a sampling temperature, nil of anything else.
func Temperature(v Value) *float32 {
	f, ok := v.Float()
	return optional(float32(f), ok)
}

// Version is a JSON integer as the version of a policy, nil of anything else.
func Version(v Value) *int32 {
	n, ok := v.Int()
	return optional(int32(n), ok && n >= 0 && n == int(int32(n)))
}

func optional[T any](x T, ok bool) *T {
	if !ok {
		return nil
	}
	return new(x) // x itself would be on the heap where it is not ok, too
}

// Identifier is a string or number as text.
func Identifier(v Value) string {
	if v.Kind() == jsonscan.Number {
		return string(v.Raw())
	}
	return v.String()
}

// Shape describes a value for messages.
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

// FirstID is the first of the keys that holds a string or number.
func FirstID(v Value, keys ...string) string {
	for _, k := range keys {
		if s := Identifier(v.Get(k)); s != "" {
			return s
		}
	}
	return ""
}

// Elements are the items of a list, none of anything else.
func Elements(v Value) []Value {
	var out []Value
	for _, x := range v.Items() {
		out = append(out, x)
	}
	return out
}

// PlainText is a string, or the literal of any other value.
func PlainText(v Value) string {
	if s, ok := v.Text(); ok {
		return s
	}
	return string(v.Raw())
}
