package pickle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
)

// ErrTooLong says that a value takes more bytes as JSON than are allowed: a pickle may
// hold one list many times.
var ErrTooLong = errors.New("it is longer as JSON than a pickle of its size can be meant to hold")

// maxNesting bounds lists and dictionaries inside each other, which a pickle may make
// hold themselves.
const maxNesting = 512

// AppendJSON appends a value as JSON, of at most so many bytes. Keys of dictionaries that
// are no text are left out, and so are members that are objects of a class.
func AppendJSON(b []byte, v any, most int) ([]byte, error) {
	return appendJSON(b, v, len(b)+most, 0)
}

func appendJSON(b []byte, v any, end, depth int) ([]byte, error) {
	if len(b) > end || depth > maxNesting {
		return b, ErrTooLong
	}
	switch x := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, x), nil
	case int64:
		return strconv.AppendInt(b, x, 10), nil
	case float64:
		switch {
		case math.IsNaN(x):
			return append(b, "NaN"...), nil
		case math.IsInf(x, 0):
			return append(b, map[bool]string{true: "Infinity", false: "-Infinity"}[x > 0]...), nil
		case x == math.Trunc(x) && math.Abs(x) < 1e15:
			return strconv.AppendFloat(b, x, 'f', 1, 64), nil
		}
		return strconv.AppendFloat(b, x, 'g', -1, 64), nil
	case string:
		return appendText(b, x)
	case []byte:
		return appendText(b, base64.StdEncoding.EncodeToString(x))
	case *[]any:
		return appendList(b, *x, end, depth)
	case []any:
		return appendList(b, x, end, depth)
	case map[any]any:
		return appendObject(b, x, end, depth)
	case Object:
		return appendText(b, "object of "+x.Class)
	}
	return append(b, "null"...), nil
}

func appendText(b []byte, s string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return b, err
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...), nil
}

func appendList(b []byte, list []any, end, depth int) (_ []byte, err error) {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendJSON(b, v, end, depth+1); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func appendObject(b []byte, m map[any]any, end, depth int) (_ []byte, err error) {
	var keys []string
	for k, v := range m {
		if s, ok := k.(string); ok {
			if _, opaque := v.(Object); !opaque {
				keys = append(keys, s)
			}
		}
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendText(b, k); err != nil {
			return b, err
		}
		b = append(b, ':')
		if b, err = appendJSON(b, m[k], end, depth+1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}
