package pickle

import (
	"errors"
	"math/big"
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// ErrTooLong means that a value exceeds the allowed size as JSON: a pickle may refer to one
// list many times.
var ErrTooLong = errors.New("it is longer as JSON than a pickle of its size can be meant to hold")

// maxNesting bounds the nesting of lists and dictionaries: a pickle may contain cycles.
const maxNesting = 512

// AppendJSON appends a value as JSON of at most `most` bytes. Dictionary keys that are not
// text are left out, and so are members that are objects of a class.
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
	case *big.Int:
		return x.Append(b, 10), nil
	case float64:
		return jsonscan.AppendFloat(b, x, 64), nil
	case string:
		return jsonscan.AppendText(b, x), nil
	case []byte:
		return jsonscan.AppendBase64(b, x), nil
	case *[]any:
		return appendList(b, *x, end, depth)
	case []any:
		return appendList(b, x, end, depth)
	case map[any]any:
		return appendObject(b, x, end, depth)
	case Object:
		return jsonscan.AppendText(b, "object of "+x.Class), nil
	}
	return append(b, "null"...), nil
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
		b = append(jsonscan.AppendText(b, k), ':')
		if b, err = appendJSON(b, m[k], end, depth+1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}
