package py

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

const maxJSONDepth = 1000

// ParseJSON reads one JSON text as Python's json.loads does: key order is kept, the last of equal keys wins, 1 is an
// int and 1.0 a float, integers have any size, and NaN, Infinity and -Infinity are numbers. A lone surrogate becomes
// U+FFFD. Its errors are *jsonscan.SyntaxError.
func ParseJSON(data []byte) (value.Value, error) { return parseJSON(data, false) }

// ParseLiterals is ParseJSON, but floats keep their spelling.
func ParseLiterals(data []byte) (value.Value, error) { return parseJSON(data, true) }

func parseJSON(data []byte, literals bool) (value.Value, error) {
	var doc jsonscan.Doc
	root, err := doc.Parse(data, jsonscan.Options{Depth: maxJSONDepth, NonFinite: true})
	if err != nil {
		return nil, err
	}
	return jsonReader{string(data), literals}.value(root)
}

// jsonReader builds values whose strings share the memory of the text.
type jsonReader struct {
	text     string
	literals bool
}

func (r jsonReader) value(v jsonscan.Value) (value.Value, error) {
	switch v.Kind() {
	case jsonscan.Object:
		d := value.NewDict(4)
		for k, m := range v.Fields() {
			item, err := r.value(m)
			if err != nil {
				return nil, err
			}
			key, _ := k.TextIn(r.text)
			d.SetString(key, item)
		}
		return d, nil
	case jsonscan.Array:
		l := &value.List{Items: []value.Value{}}
		for _, m := range v.Items() {
			item, err := r.value(m)
			if err != nil {
				return nil, err
			}
			l.Items = append(l.Items, item)
		}
		return l, nil
	case jsonscan.String:
		s, _ := v.TextIn(r.text)
		return &value.Str{S: s}, nil
	case jsonscan.Number:
		return r.number(v)
	case jsonscan.Bool:
		if b, _ := v.Bool(); b {
			return value.True, nil
		}
		return value.False, nil
	}
	return value.Nil, nil
}

func (r jsonReader) number(v jsonscan.Value) (value.Value, error) {
	text := r.text[v.Offset() : v.Offset()+len(v.Raw())]
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value.NewInt(i), nil
	}
	if strings.Trim(text, "-0123456789") == "" {
		if len(strings.TrimPrefix(text, "-")) > value.MaxDigits {
			return nil, &jsonscan.SyntaxError{Offset: v.Offset(), Msg: fmt.Sprintf("an integer of more than %d digits", value.MaxDigits)}
		}
		b, _ := new(big.Int).SetString(text, 10)
		return value.NewBig(b), nil
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range gives an infinity, as in Python
	if r.literals && !math.IsNaN(f) && !strings.HasSuffix(text, "Infinity") {
		return &value.Float{V: f, Literal: text}, nil
	}
	return &value.Float{V: f}, nil
}
