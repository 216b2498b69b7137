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
	Repr(t *Text, l *Limits, depth int)
}

// ToStr implements Python's str().
func ToStr(l *Limits, v Value) *Str {
	if s, ok := v.(*Str); ok {
		return s.Plain()
	}
	t := Text{Lim: l}
	WriteStr(&t, l, v)
	return t.Own()
}

// WriteStr appends str(v).
func WriteStr(t *Text, l *Limits, v Value) {
	switch v := v.(type) {
	case *Str:
		t.Str(v)
	case *Undefined:
	default:
		WriteRepr(t, l, v, l.Depth)
	}
}

// ReprString returns repr(v) for error messages, or the type's name in angle brackets if it gets too long.
func ReprString(v Value) string {
	t, l := Text{}, &Limits{Bytes: 1 << 16, Depth: 20}
	if WriteRepr(&t, l, v, l.Depth); l.Err != nil {
		return "<" + v.TypeName() + ">"
	}
	return string(t.B)
}

// WriteRepr appends repr(v).
func WriteRepr(t *Text, l *Limits, v Value, depth int) {
	if depth <= 0 {
		l.Failf(Other, "maximum recursion depth exceeded while getting the repr of an object")
	}
	if len(t.B) > l.Bytes {
		l.Failf(Limit, "text of more than %d bytes", l.Bytes)
	}
	if !l.Spend(StepWork) {
		return
	}
	switch v := v.(type) {
	case *None, *Bool, *Int, *Float:
		writeScalar(t, l, v, &pythonWords, pytext.Float)
	case *Str:
		if v.Markup {
			t.Lit("Markup(")
			quote(t, v)
			t.Lit(")")
			return
		}
		quote(t, v)
	case *Undefined:
		t.Lit("Undefined")
	case *List:
		open, end := v.Brackets()
		writeItems(t, l, open, end, len(v.Items), func(i int) { WriteRepr(t, l, v.Items[i], depth-1) })
	case *Dict:
		writeItems(t, l, "{", "}", v.Len(), func(i int) {
			WriteRepr(t, l, v.Key(i), depth-1)
			t.Lit(": ")
			WriteRepr(t, l, v.Val(i), depth-1)
		})
	case *Range:
		bounds := fmt.Sprintf("range(%d, %d", v.Start, v.Stop)
		if v.Step != 1 {
			bounds += fmt.Sprintf(", %d", v.Step)
		}
		scalar(t, bounds+")", v.F)
	case *View:
		writeItems(t, l, v.Kind+"([", "])", v.D.Len(), func(i int) { WriteRepr(t, l, v.At(i), depth-1) })
	case *Bytes:
		t.From(reprBytes(v.B), v.F, 0, len(v.B))
	case Reprer:
		v.Repr(t, l, depth-1)
	default:
		t.Lit("<" + v.TypeName() + " object>")
	}
}

// Brackets returns what stands around the items of a list or tuple in its repr.
func (v *List) Brackets() (open, end string) {
	switch {
	case !v.Tuple:
		return "[", "]"
	case len(v.Items) == 1:
		return "(", ",)"
	}
	return "(", ")"
}

// pythonWords and jsonWords are the spellings of None, False and True.
var pythonWords, jsonWords = [3]string{"None", "False", "True"}, [3]string{"null", "false", "true"}

// writeScalar appends None, a bool or a number.
func writeScalar(t *Text, l *Limits, v Value, words *[3]string, float func(float64) string) {
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
		scalar(t, v.text(l), v.F)
	case *Float:
		scalar(t, v.text(float), v.F)
	}
}

func scalar(t *Text, s string, f *Field) { t.From(s, f, 0, len(s)) }

func writeItems(t *Text, l *Limits, open, end string, n int, write func(i int)) {
	t.Lit(open)
	for i := 0; i < n && l.Err == nil; i++ {
		if i > 0 {
			t.Lit(", ")
		}
		write(i)
	}
	t.Lit(end)
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
