package jsonl

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
)

type encoder struct {
	b      []byte
	where  rollout.Where
	prefix string // JSON pointer of the current object
	err    error
}

func (e *encoder) fail(at, format string, args ...any) {
	if e.err == nil {
		w := e.where
		w.Field = e.prefix + at
		e.err = rollout.Errorf(rollout.KindInput, w, format, args...)
	}
}

// key writes a key, with a comma before it unless it is the first in its object.
func (e *encoder) key(k string) {
	if c := e.b[len(e.b)-1]; c != '{' {
		e.b = append(e.b, ',')
	}
	e.text(k, "")
	e.b = append(e.b, ':')
}

func (e *encoder) text(s, at string) {
	if !utf8.ValidString(s) {
		e.fail(at, "the text is not valid UTF-8")
	}
	e.b = append(jsonscan.AppendEscaped(append(e.b, '"'), s), '"')
}

func (e *encoder) int(i int64) { e.b = strconv.AppendInt(e.b, i, 10) }

func (e *encoder) float(f float64, bits int, at string) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.fail(at, "%g is not finite", f)
	}
	e.b = strconv.AppendFloat(e.b, f, 'g', -1, bits)
}

// raw writes JSON text with line breaks replaced by spaces. Line breaks occur only between
// tokens: JSON strings cannot contain them.
func (e *encoder) raw(v json.RawMessage, at string) {
	var d jsonscan.Doc
	if _, err := d.Parse(v, jsonscan.Options{}); err != nil {
		e.fail(at, "the value kept verbatim is not JSON: %w", err)
		return
	}
	start := len(e.b)
	e.b = append(e.b, v...)
	for i := start; i < len(e.b); i++ {
		if e.b[i] == '\n' || e.b[i] == '\r' {
			e.b[i] = ' '
		}
	}
}

func (e *encoder) object(m map[string]json.RawMessage, at string) { anyObject.write(e, &m, at, m) }

func (e *encoder) list(n int, each func(i int)) {
	e.b = append(e.b, '[')
	for i := range n {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		each(i)
	}
	e.b = append(e.b, ']')
}
