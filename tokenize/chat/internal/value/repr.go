package value

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
)

// Reprer is implemented by values of other packages that write their own repr.
type Reprer interface {
	Repr(t *Text, l *Limits, depth int) *Fault
}

// ToStr implements Python's str().
func ToStr(l *Limits, v Value, track bool) (*Str, *Fault) {
	if s, ok := v.(*Str); ok {
		return s.Plain(), nil
	}
	t := Text{Track: track, Lim: l}
	if fault := WriteStr(&t, l, v); fault != nil {
		return nil, fault
	}
	return t.Own(), nil
}

// WriteStr appends str(v).
func WriteStr(t *Text, l *Limits, v Value) *Fault {
	switch v := v.(type) {
	case *Str:
		t.Str(v)
		return nil
	case *Undefined:
		return nil
	}
	return WriteRepr(t, l, v, l.Depth)
}

// ReprString returns repr(v) for error messages, or the type's name in angle brackets if it gets too long.
func ReprString(v Value) string {
	t := Text{}
	if WriteRepr(&t, &Limits{Bytes: 1 << 16, Depth: 20}, v, 20) != nil {
		return "<" + v.TypeName() + ">"
	}
	return string(t.B)
}

// WriteRepr appends repr(v).
func WriteRepr(t *Text, l *Limits, v Value, depth int) *Fault {
	if depth <= 0 {
		return ValueError("maximum recursion depth exceeded while getting the repr of an object")
	}
	if len(t.B) > l.Bytes {
		return LimitError("text of more than %d bytes", l.Bytes)
	}
	if !l.Spend(StepWork) {
		return l.Over()
	}
	switch v := v.(type) {
	case *None, *Bool, *Int, *Float:
		return writeScalar(t, l, v, &pythonWords, pytext.Float)
	case *Str:
		if v.Markup {
			t.Lit("Markup(")
			quote(t, v)
			t.Lit(")")
			return nil
		}
		quote(t, v)
	case *Undefined:
		t.Lit("Undefined")
	case *List:
		open, end := "[", "]"
		if v.Tuple {
			open, end = "(", ")"
			if len(v.Items) == 1 {
				end = ",)"
			}
		}
		return writeItems(t, open, end, len(v.Items), func(i int) *Fault { return WriteRepr(t, l, v.Items[i], depth-1) })
	case *Dict:
		return writeItems(t, "{", "}", v.Len(), func(i int) *Fault {
			if fault := WriteRepr(t, l, v.Key(i), depth-1); fault != nil {
				return fault
			}
			t.Lit(": ")
			return WriteRepr(t, l, v.Val(i), depth-1)
		})
	case *Range:
		bounds := fmt.Sprintf("range(%d, %d", v.Start, v.Stop)
		if v.Step != 1 {
			bounds += fmt.Sprintf(", %d", v.Step)
		}
		scalar(t, bounds+")", v.F)
	case *View:
		return writeItems(t, v.Kind+"([", "])", v.D.Len(), func(i int) *Fault { return WriteRepr(t, l, v.At(i), depth-1) })
	case *Bytes:
		t.From(reprBytes(v.B), v.F, 0, len(v.B))
	case Reprer:
		return v.Repr(t, l, depth-1)
	default:
		t.Lit("<" + v.TypeName() + " object>")
	}
	return nil
}

// pythonWords and jsonWords are the spellings of None, False and True.
var pythonWords, jsonWords = [3]string{"None", "False", "True"}, [3]string{"null", "false", "true"}

// writeScalar appends None, a bool or a number.
func writeScalar(t *Text, l *Limits, v Value, words *[3]string, float func(float64) string) *Fault {
	switch v := v.(type) {
	case *None:
		scalar(t, words[0], v.F)
	case *Bool:
		word := words[1]
		if v.V {
			word = words[2]
		}
		scalar(t, word, v.F)
	case *Int:
		l.digits(v)
		s, fault := v.text()
		if fault != nil {
			return fault
		}
		scalar(t, s, v.F)
	case *Float:
		scalar(t, v.text(float), v.F)
	}
	return nil
}

func scalar(t *Text, s string, f *Field) { t.From(s, f, 0, len(s)) }

func writeItems(t *Text, open, end string, n int, write func(i int) *Fault) *Fault {
	t.Lit(open)
	for i := range n {
		if i > 0 {
			t.Lit(", ")
		}
		if fault := write(i); fault != nil {
			return fault
		}
	}
	t.Lit(end)
	return nil
}

// quote appends the repr of a string.
func quote(t *Text, s *Str) {
	q := pytext.QuoteOf(s.S)
	t.Lit(q)
	if t.Lim != nil {
		t.Lim.Spend(4 * len(s.S))
	}
	t.Mapped(s, func(rest string) (int, string) {
		r, n := utf8.DecodeRuneInString(rest)
		if escape := pytext.EscapeIn(q, r); escape != "" {
			return n, escape
		}
		return n, rest[:n]
	})
	t.Lit(q)
}

func reprBytes(b string) string {
	q := pytext.QuoteOf(b)
	var out strings.Builder
	out.WriteString("b" + q)
	for _, c := range []byte(b) {
		escape := pytext.EscapeIn(q, rune(c))
		if c >= utf8.RuneSelf {
			escape = pytext.Escape(rune(c))
		}
		out.WriteString(cmp.Or(escape, string(rune(c))))
	}
	return out.String() + q
}
