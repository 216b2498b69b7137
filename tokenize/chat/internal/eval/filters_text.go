package eval

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

func filterIndent(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_indent", 0, "width", "first", "blank")
	if !ok {
		return undefined
	}
	unit := value.Lit("    ")
	switch w := p[0].(type) {
	case nil:
	case *value.Str:
		unit = w
	default:
		n, ok := x.operandArg(w)
		if !ok {
			return undefined
		}
		if n > int64(x.lim.Bytes) {
			return x.failf(value.Limit, "indent of %d blanks, more than %d bytes", n, x.lim.Bytes)
		}
		if !x.make(int(max(n, 0))) {
			return undefined
		}
		unit = value.Lit(strings.Repeat(" ", int(max(n, 0))))
	}
	s, ok := v.(*value.Str)
	if !ok {
		if u, ok := v.(*value.Undefined); ok {
			return x.fail(u.Use())
		}
		if l, ok := v.(*value.List); ok && !l.Tuple { // list += "\n" works in Python
			return x.noAttr(v, "splitlines")
		}
		return x.val(value.Arith(&x.lim.Limits, "+", v, value.Lit("\n")))
	}
	if s.Markup {
		unit = unit.Escape(&x.lim.Limits)
	}
	lines, fault := s.Lines(&x.lim.Limits, false)
	if fault != nil {
		return x.fail(fault)
	}
	// Jinja adds a newline before it splits, so a final newline gives a last, empty
	// line; a carriage return at the end and that newline are one.
	if s.S == "" || endsLine(s.S) {
		lines = append(lines, value.Empty)
	}
	if n := len(unit.S); n > 0 && len(lines) > (x.lim.Bytes-min(len(s.S), x.lim.Bytes))/n {
		return x.failf(value.Limit, "indent makes more than %d bytes", x.lim.Bytes)
	}
	first := p[1] != nil && value.Truth(p[1])
	blank := p[2] != nil && value.Truth(p[2])
	t := x.buffer()
	defer func() { x.buffers = append(x.buffers, t) }()
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

// endsLine reports whether a newline after s begins a line of its own.
func endsLine(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	switch r {
	case '\n', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

func filterTruncate(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_truncate", 0, "length", "killwords", "end", "leeway")
	if !ok {
		return undefined
	}
	var end value.Value = value.Lit("...")
	length, leeway := int64(255), int64(5)
	if p[0] != nil {
		if length, ok = x.operandArg(p[0]); !ok {
			return undefined
		}
	}
	if p[2] != nil {
		end = p[2]
	}
	n, fault := value.Len(end)
	if fault != nil {
		return x.fail(fault)
	}
	if length < int64(n) {
		return x.failf(value.Other, "expected length >= %d, got %d", n, length)
	}
	if f, isFloat := p[3].(*value.Float); isFloat && f.V >= 0 && f.V < 1<<40 {
		leeway = int64(f.V)
	} else if !isNone(p[3]) {
		if leeway, ok = x.operandArg(p[3]); !ok {
			return undefined
		}
	}
	if leeway < 0 {
		return x.failf(value.Other, "expected leeway >= 0, got %d", leeway)
	}
	size, fault := value.Len(v)
	if fault != nil {
		return x.fail(fault)
	}
	if int64(size) <= length+leeway {
		return v
	}
	s, ok := v.(*value.Str)
	if !ok {
		_, list := v.(*value.List)
		if _, numbers := v.(*value.Range); (list || numbers) && (p[1] == nil || !value.Truth(p[1])) { // a part of it has no words
			return x.noAttr(v, "rsplit")
		}
		return x.failf(value.Type, "can only truncate text, not %s", v.TypeName())
	}
	keep := length - int64(n)
	cut := s.Substring(&x.lim.Limits, nil, &keep, 1)
	if p[1] == nil || !value.Truth(p[1]) {
		if i := strings.LastIndex(cut.S, " "); i >= 0 {
			cut = cut.Slice(0, i)
		}
	}
	return x.val(value.Arith(&x.lim.Limits, "+", cut, end))
}

func filterWordcount(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_wordcount", 0); !ok {
		return undefined
	}
	n, in := int64(0), false
	s := x.softStr(v)
	x.spend(16 * len(s.S))
	for _, r := range s.S {
		w := r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
		if w && !in {
			n++
		}
		in = w
	}
	return value.NewInt(n)
}

func filterStriptags(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_striptags", 0); !ok {
		return undefined
	}
	s := x.str(v)
	if !x.make(20 * len(s.S)) {
		return undefined
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
	text = strings.Join(strings.FieldsFunc(text, value.IsSpace), " ")
	t := x.lim.NewText(s)
	t.Changed(unescapeHTML(text), s, 0, len(s.S))
	return t.Value()
}

func filterURLEncode(x *exec, v value.Value, a args) value.Value {
	if _, ok := x.bind(a, "do_urlencode", 0); !ok {
		return undefined
	}
	if _, ok := v.(*value.Str); ok || !iterable(v) {
		return x.quoteURL(x.str(v), "/")
	}
	items := []value.Value{}
	if d, ok := v.(*value.Dict); ok {
		view := &value.View{D: d, Kind: "dict_items"}
		for i := range d.Len() {
			items = append(items, view.At(i))
		}
	} else {
		var ok bool
		if items, ok = elements(x, v); !ok {
			return undefined
		}
	}
	var parts []*value.Str
	for _, it := range items {
		kv, fault := value.Elements(&x.lim.Limits, it)
		if fault != nil {
			return x.fail(fault)
		}
		if len(kv) != 2 {
			return x.failf(value.Other, "not enough values to unpack (expected 2, got %d)", len(kv))
		}
		pair, fault := value.Concat(&x.lim.Limits, x.plus(x.quoteURL(x.str(kv[0]), "")), value.Lit("="), x.plus(x.quoteURL(x.str(kv[1]), "")))
		if fault != nil {
			return x.fail(fault)
		}
		parts = append(parts, pair)
	}
	return x.strFault(value.Join(&x.lim.Limits, value.Lit("&"), parts))
}

func (x *exec) plus(s *value.Str) *value.Str {
	out, fault := s.Replace(&x.lim.Limits, value.Lit("%20"), value.Lit("+"), -1)
	if fault != nil {
		return s
	}
	return out
}

// quoteURL is urllib's quote.
func (x *exec) quoteURL(s *value.Str, safe string) *value.Str {
	return s.Map(&x.lim.Limits, func(rest string, r rune, _ bool) string {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-~"+safe, r)) {
			return string(r)
		}
		out := ""
		_, n := utf8.DecodeRuneInString(rest)
		for i := range n {
			out += sprintf("%%%02X", rest[i])
		}
		return out
	})
}

func filterXMLAttr(x *exec, v value.Value, a args) value.Value {
	p, ok := x.bind(a, "do_xmlattr", 0, "autospace")
	if !ok {
		return undefined
	}
	d, ok := v.(*value.Dict)
	if !ok {
		if u, ok := v.(*value.Undefined); ok {
			return x.fail(u.Use())
		}
		return x.failf(value.Other, "'%s' object has no attribute 'items'", v.TypeName())
	}
	t := x.buffer()
	defer func() { x.buffers = append(x.buffers, t) }()
	space := p[0] == nil || value.Truth(p[0])
	for i := 0; i < d.Len() && x.step(1); i++ {
		val := d.Val(i)
		if isNone(val) || isUndefined(val) {
			continue
		}
		key, ok := d.Key(i).(*value.Str)
		if !ok {
			return x.failf(value.Type, "expected string or bytes-like object, got '%s'", d.Key(i).TypeName())
		}
		if strings.ContainsAny(key.S, " \t\n\r\f\v/>=") {
			return x.failf(value.Other, "Invalid character in attribute name: %s", value.ReprString(key))
		}
		if space || len(t.B) > 0 {
			t.Lit(" ")
		}
		t.Str(key.Escape(&x.lim.Limits))
		t.Lit(`="`)
		t.Str(x.softStr(val).Escape(&x.lim.Limits))
		t.Lit(`"`)
	}
	out := t.Value()
	out.Markup = x.escape
	return out
}
