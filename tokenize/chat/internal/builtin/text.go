package builtin

import (
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/py"
	"github.com/turnpack/turnpack/tokenize/chat/internal/rt"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterIndent(x *rt.Context, v value.Value, p rt.Params) value.Value {
	unit := value.Lit("    ")
	if p[0] != nil {
		unit = indentText(x, p[0])
	}
	s, ok := v.(*value.Str)
	if !ok {
		if u, ok := v.(*value.Undefined); ok {
			return x.Fail(u.Use())
		}
		if l, ok := v.(*value.List); ok && !l.Tuple { // list += "\n" works in Python
			return x.NoAttr(v, "splitlines")
		}
		return py.Arith(x.Lim, "+", v, value.Lit("\n"))
	}
	if s.Markup {
		unit = py.Escape(unit, x.Lim)
	}
	lines := py.Lines(s, x.Lim, false)
	// Jinja adds a newline before it splits, so a final newline gives an empty last line. The newline completes a
	// carriage return at the end.
	if r, _ := utf8.DecodeLastRuneInString(s.S); s.S == "" || r != '\r' && pytext.IsLineEnd(r) {
		lines = append(lines, value.Empty)
	}
	if n := len(unit.S); n > 0 && len(lines) > (x.Lim.Bytes-min(len(s.S), x.Lim.Bytes))/n {
		return x.Failf(value.Limit, "indent makes more than %d bytes", x.Lim.Bytes)
	}
	first := p.Flag(1, false)
	blank := p.Flag(2, false)
	t := x.Buffer()
	defer func() { x.Release(t) }()
	for i, l := range lines {
		line := l.(*value.Str)
		if i > 0 {
			t.Lit("\n")
		}
		if (i == 0 && first) || (i > 0 && (blank || line.S != "")) {
			t.Str(unit)
		}
		t.Str(line)
	}
	out := t.Value()
	out.Markup = s.Markup
	return out
}

// indentText returns an indent, given as a number of spaces or as a text.
func indentText(x *rt.Context, v value.Value) *value.Str {
	if s, ok := v.(*value.Str); ok {
		return s
	}
	n := max(x.Operand(v, 0), 0)
	if n > int64(x.Lim.Bytes) {
		x.Failf(value.Limit, "indent of %d blanks, more than %d bytes", n, x.Lim.Bytes)
	} else if x.Make(int(n)) {
		return value.Lit(strings.Repeat(" ", int(n)))
	}
	return value.Empty
}

func filterTruncate(x *rt.Context, v value.Value, p rt.Params) value.Value {
	var end value.Value = value.Lit("...")
	length, leeway := x.Operand(p[0], 255), int64(5)
	if p[2] != nil {
		end = p[2]
	}
	n := value.Len(x.Lim, end)
	if length < int64(n) {
		return x.Failf(value.Other, "expected length >= %d, got %d", n, length)
	}
	if f, isFloat := p[3].(*value.Float); isFloat && f.V >= 0 && f.V < 1<<40 {
		leeway = int64(f.V)
	} else if !value.IsNone(p[3]) {
		leeway = x.Operand(p[3], 0)
	}
	if leeway < 0 {
		return x.Failf(value.Other, "expected leeway >= 0, got %d", leeway)
	}
	if int64(value.Len(x.Lim, v)) <= length+leeway {
		return v
	}
	s, ok := v.(*value.Str)
	if !ok {
		_, list := v.(*value.List)
		if _, numbers := v.(*value.Range); (list || numbers) && !p.Flag(1, false) { // a slice of it has no words
			return x.NoAttr(v, "rsplit")
		}
		return x.Failf(value.Type, "can only truncate text, not %s", v.TypeName())
	}
	keep := length - int64(n)
	cut := py.Substring(s, x.Lim, nil, &keep, 1)
	if !p.Flag(1, false) {
		if i := strings.LastIndex(cut.S, " "); i >= 0 {
			cut = cut.Slice(0, i)
		}
	}
	return py.Arith(x.Lim, "+", cut, end)
}

func filterWordcount(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	n, in := int64(0), false
	s := x.SoftStr(v)
	x.Spend(16 * len(s.S))
	for _, r := range s.S {
		w := r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
		if w && !in {
			n++
		}
		in = w
	}
	return value.NewInt(n)
}

func filterStriptags(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	s := x.Str(v)
	if !x.Make(20 * len(s.S)) {
		return value.Stopped
	}
	var b strings.Builder
	text := s.S
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			break
		}
		inside, end := text[i:], ">"
		if strings.HasPrefix(inside, "<!--") {
			inside, end = inside[4:], "-->"
		}
		_, rest, closed := strings.Cut(inside, end)
		if !closed {
			break
		}
		b.WriteString(text[:i])
		text = rest
	}
	text = b.String() + text
	text = strings.Join(strings.FieldsFunc(text, pytext.IsSpace), " ")
	t := &value.Text{Lim: x.Lim}
	t.Changed(html.UnescapeString(text), s, 0, len(s.S))
	return t.Value()
}

func filterURLEncode(x *rt.Context, v value.Value, _ rt.Params) value.Value {
	if _, ok := v.(*value.Str); ok || !iterable(v) {
		return quoteURL(x, x.Str(v), "/")
	}
	if d, ok := v.(*value.Dict); ok {
		v = &value.View{D: d, Kind: "dict_items"}
	}
	var parts []*value.Str
	for _, it := range x.Elements(v) {
		kv := value.Elements(x.Lim, it)
		if len(kv) != 2 {
			return x.Failf(value.Other, "not enough values to unpack (expected 2, got %d)", len(kv))
		}
		parts = append(parts, value.Concat(x.Lim, quotePlus(x, kv[0]), value.Lit("="), quotePlus(x, kv[1])))
	}
	return py.Join(x.Lim, value.Lit("&"), parts)
}

// quotePlus implements urllib's quote_plus.
func quotePlus(x *rt.Context, v value.Value) *value.Str {
	return py.Replace(quoteURL(x, x.Str(v), ""), x.Lim, value.Lit("%20"), value.Lit("+"), -1)
}

// quoteURL implements urllib's quote.
func quoteURL(x *rt.Context, s *value.Str, safe string) *value.Str {
	return py.Map(s, x.Lim, func(at int, r rune) string {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-~"+safe, r)) {
			return string(r)
		}
		out := ""
		for _, c := range []byte(s.S[at : at+value.RuneLen(s.S[at:])]) {
			out += fmt.Sprintf("%%%02X", c)
		}
		return out
	})
}

func filterXMLAttr(x *rt.Context, v value.Value, p rt.Params) value.Value {
	d, ok := v.(*value.Dict)
	if !ok {
		return x.NoAttr(v, "items")
	}
	t := x.Buffer()
	defer func() { x.Release(t) }()
	space := p.Flag(0, true)
	for i := 0; i < d.Len() && x.Step(1); i++ {
		val := d.Val(i)
		if value.IsNone(val) || value.IsUndefined(val) {
			continue
		}
		key, ok := d.Key(i).(*value.Str)
		if !ok {
			return x.Failf(value.Type, "expected string or bytes-like object, got '%s'", d.Key(i).TypeName())
		}
		if strings.ContainsAny(key.S, " \t\n\r\f\v/>=") {
			return x.Failf(value.Other, "Invalid character in attribute name: %s", value.ReprString(key))
		}
		if space || len(t.B) > 0 {
			t.Lit(" ")
		}
		t.Str(py.Escape(key, x.Lim))
		t.Lit(`="`)
		t.Str(py.Escape(x.SoftStr(val), x.Lim))
		t.Lit(`"`)
	}
	out := t.Value()
	out.Markup = x.Escape
	return out
}
