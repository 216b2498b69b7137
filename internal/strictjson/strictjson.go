// Package strictjson reads the JSON objects of requests and settings, with errors written for their
// authors.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Decode reads one object into the value to points to, a map or a struct whose fields have JSON names.
// Unlike encoding/json it refuses text after the object, a duplicate key, and a key that is unknown or
// differs in case.
func Decode(text []byte, to any) error {
	if err := checkKeys(text, structKeys(reflect.TypeOf(to).Elem())); err != nil {
		return err
	}
	err := json.Unmarshal(text, to)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: wrong.Field}, "found %s, expected %s", wrong.Value, describeKind(wrong.Type.Kind()))
	}
	return fault(err)
}

// structKeys returns the keys of a struct, nil for any other type, which allows any key.
func structKeys(t reflect.Type) map[string]bool {
	if t.Kind() != reflect.Struct {
		return nil
	}
	out := map[string]bool{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out[name] = true
	}
	return out
}

// checkKeys checks the keys of the object and that no text follows it.
func checkKeys(text []byte, known map[string]bool) error {
	in := json.NewDecoder(bytes.NewReader(text))
	open, err := in.Token()
	if err == io.EOF {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the text is empty, expected a JSON object")
	}
	if err == nil && open != json.Delim('{') {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "the text is no JSON object")
	}
	seen := map[string]bool{}
	for err == nil && in.More() {
		var key json.Token
		if key, err = in.Token(); err != nil {
			break
		}
		name := key.(string)
		switch where := (rollout.Where{Field: name}); {
		case seen[name]:
			return rollout.Errorf(rollout.KindInput, where, "stands there twice, expected it once")
		case known != nil && !known[name]:
			return rollout.Errorf(rollout.KindInput, where, "is unknown, expected %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		seen[name] = true
		err = in.Decode(new(json.RawMessage))
	}
	if err == nil {
		_, err = in.Token() // the end of the object
	}
	if err != nil {
		return fault(err)
	}
	if rest := bytes.TrimSpace(text[in.InputOffset():]); len(rest) > 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Byte: rollout.At(int(in.InputOffset()))}, "something follows the object, expected one alone")
	}
	return nil
}

// fault returns the error for invalid JSON, with its location; nil if err is nil.
func fault(err error) error {
	if err == nil {
		return nil
	}
	e := rollout.Errorf(rollout.KindInput, rollout.Where{}, "the text is no JSON: %v", err)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		e = rollout.Errorf(rollout.KindInput, rollout.Where{Byte: rollout.At(int(wrong.Offset))}, "the text is no JSON: %v", err)
		if strings.Contains(err.Error(), "'N'") || strings.Contains(err.Error(), "'I'") {
			e = e.WithFix("NaN and Infinity are no numbers of JSON: leave the key out, or say what failed")
		}
	}
	return e
}

// describeKind returns a description of the values of a field.
func describeKind(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number of 64 bits"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Int32:
		return "a whole number of 32 bits"
	case reflect.String:
		return "a text in quotes"
	}
	return "an object"
}
