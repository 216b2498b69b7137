package value

import (
	"cmp"
	"strings"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/internal/pytext"
)

// JSON holds the options of json.dumps.
type JSON struct {
	EnsureASCII bool
	SortKeys    bool
	Lines       bool // one line for each item, indented by Indent
	Indent      string
	Item, Key   string // separators
	// From is the field that the indent and separators come from, nil for the template.
	From *Field
}

// NewJSON returns the default options for an indent, which may be nil.
func NewJSON(indent *string) *JSON {
	if indent != nil {
		return &JSON{Lines: true, Indent: *indent, Item: ",", Key: ": "}
	}
	return &JSON{Item: ", ", Key: ": "}
}

// Write appends json.dumps(v).
func (j *JSON) Write(t *Text, l *Limits, v Value) { j.write(t, l, v, 0) }

func (j *JSON) write(t *Text, l *Limits, v Value, depth int) {
	if depth > l.Depth {
		l.Failf(Other, "maximum recursion depth exceeded while encoding a JSON object")
	}
	if len(t.B) > l.Bytes {
		l.Failf(Limit, "JSON text of more than %d bytes", l.Bytes)
	}
	if !l.Spend(StepWork / 2) {
		return
	}
	switch v := v.(type) {
	case *None, *Bool, *Int, *Float:
		writeScalar(t, l, v, &jsonWords, jsonFloat)
	case *Str:
		j.str(t, v)
	case *List:
		t.Byte('[')
		for i, x := range v.Items {
			if l.Err != nil {
				return
			}
			j.item(t, l, i, depth+1)
			j.write(t, l, x, depth+1)
		}
		j.end(t, l, ']', len(v.Items), depth)
	case *Dict:
		j.dict(t, l, v, depth)
	default:
		l.Failf(Type, "Object of type %s is not JSON serializable", v.TypeName())
	}
}

func (j *JSON) dict(t *Text, l *Limits, d *Dict, depth int) {
	var order []Value
	if j.SortKeys {
		if !l.Make(64 * d.Len()) {
			return
		}
		keys := make([]Value, d.Len())
		pos := make([]Value, d.Len())
		for i := range keys {
			keys[i], pos[i] = d.Key(i), NewInt(int64(i))
		}
		order = Sort(l, pos, keys, false)
	}
	t.Byte('{')
	for n := range d.entries {
		i := n
		if j.SortKeys {
			k, _ := AsInt(order[n])
			i = int(k)
		}
		if l.Err != nil {
			return
		}
		j.item(t, l, n, depth+1)
		e := &d.entries[i]
		switch k := e.key.(type) {
		case nil:
			j.str(t, &Str{S: e.h.s})
		case *Str:
			j.str(t, k)
		case *None, *Bool, *Int, *Float: // as a text of the template
			text := Text{}
			writeScalar(&text, l, k, &jsonWords, jsonFloat)
			t.Lit(`"` + string(text.B) + `"`)
		default:
			l.Failf(Type, "keys must be str, int, float, bool or None, not %s", k.TypeName())
		}
		t.From(j.Key, j.From, 0, 0)
		j.write(t, l, e.val, depth+1)
	}
	j.end(t, l, '}', d.Len(), depth)
}

// item begins item i of a list or dict.
func (j *JSON) item(t *Text, l *Limits, i, depth int) {
	if i > 0 {
		t.From(j.Item, j.From, 0, 0)
	}
	j.newline(t, l, depth)
}

// end ends a list or dict of n items.
func (j *JSON) end(t *Text, l *Limits, bracket byte, n, depth int) {
	if n > 0 {
		j.newline(t, l, depth)
	}
	t.Byte(bracket)
}

// newline begins a new line if each item has its own.
func (j *JSON) newline(t *Text, l *Limits, depth int) {
	if !j.Lines {
		return
	}
	if len(j.Indent) > 0 && depth > (l.Bytes-min(len(t.B), l.Bytes))/len(j.Indent) {
		l.Failf(Limit, "JSON text of more than %d bytes", l.Bytes)
	}
	if l.Make(len(j.Indent) * depth) {
		t.Byte('\n')
		t.From(strings.Repeat(j.Indent, depth), j.From, 0, 0)
	}
}

var jsonNames = map[string]string{"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}

func jsonFloat(f float64) string {
	text := pytext.Float(f)
	return cmp.Or(jsonNames[text], text)
}

// str appends a JSON string; only the bytes between the quotes have the origin of s.
func (j *JSON) str(t *Text, s *Str) {
	t.Byte('"')
	if s.Runs() == nil && !j.EnsureASCII {
		t.escaped(s)
	} else {
		t.Mapped(s, func(rest string) (int, string) {
			if n := jsonscan.Plain(rest); n > 0 && !j.EnsureASCII {
				return n, rest[:n]
			}
			return j.escape(rest)
		})
	}
	t.Byte('"')
}
