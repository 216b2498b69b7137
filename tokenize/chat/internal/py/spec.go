package py

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// spec is a Python format specification.
type spec struct {
	fill      string
	align     byte // < > = ^ or 0
	sign      byte // + - space or 0
	alt, zero bool
	noNeg     bool // a negative number that is rounded to zero has no sign
	width     int
	comma     byte // , or _ or 0
	prec      int  // -1 for none
	typ       byte // 0 for none
}

func parseSpec(l *value.Limits, s string) spec {
	p := spec{prec: -1}
	isAlign := func(c byte) bool { return c == '<' || c == '>' || c == '=' || c == '^' }
	if s != "" {
		if n := value.RuneLen(s); len(s) > n && isAlign(s[n]) {
			p.fill, p.align, s = s[:n], s[n], s[n+1:]
		} else if isAlign(s[0]) {
			p.align, s = s[0], s[1:]
		}
	}
	if s != "" && (s[0] == '+' || s[0] == '-' || s[0] == ' ') {
		p.sign, s = s[0], s[1:]
	}
	s, p.noNeg = strings.CutPrefix(s, "z")
	if strings.HasPrefix(s, "#") {
		p.alt, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") {
		p.zero, s = true, s[1:]
		if p.fill == "" {
			p.fill = "0"
		}
	}
	if p.fill == "" {
		p.fill = " "
	}
	num := func() (int, bool) {
		n := 0
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		v, err := strconv.Atoi(s[:n])
		ok := n > 0
		if err != nil && ok {
			l.Failf(value.Other, "Too many decimal digits in format string")
		}
		s = s[n:]
		return v, ok
	}
	p.width, _ = num()
	if s != "" && (s[0] == ',' || s[0] == '_') {
		p.comma, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		n, ok := num()
		if !ok {
			l.Failf(value.Other, "Format specifier missing precision")
		}
		p.prec = n
	}
	if len(s) > 1 {
		l.Failf(value.Other, "Invalid format specifier")
	}
	if s != "" {
		p.typ = s[0]
	}
	grouped := "defgEG%F\x00"
	if p.comma == '_' {
		grouped += "boxX"
	}
	if p.comma != 0 && strings.IndexByte(grouped, p.typ) < 0 {
		l.Failf(value.Other, "Cannot specify '%c' with '%c'.", p.comma, p.typ)
	}
	return p
}

// formatValue implements Python's format(v, spec).
func formatValue(l *value.Limits, v value.Value, spec *value.Str) *value.Str {
	if spec.S == "" {
		return value.ToStr(l, v)
	}
	x, text := v.(*value.Str)
	n := value.NumberOf(v)
	if !text && !n.OK() {
		l.Failf(value.Type, "unsupported format string passed to %s.__format__", v.TypeName())
	}
	p := parseSpec(l, spec.S)
	if l.Err != nil {
		return value.Empty
	}
	if !text {
		return formatNumber(l, p, v, n, spec)
	}
	if p.typ != 0 && p.typ != 's' {
		l.Failf(value.Other, "Unknown format code '%c' for object of type 'str'", p.typ)
	}
	if p.sign != 0 || p.comma != 0 || p.alt || p.noNeg || p.align == '=' {
		l.Failf(value.Other, "format specifier not allowed in string format specifier")
	}
	s := x.Plain()
	if p.prec >= 0 {
		s = s.Slice(0, forward(s.S, 0, p.prec))
	}
	return align(l, p, p.filler(spec), s, '<')
}

func formatNumber(l *value.Limits, p spec, v value.Value, n value.Number, from *value.Str) *value.Str {
	if _, ok := v.(*value.Bool); ok && p.typ == 0 {
		p.typ = 'd'
	}
	if p.zero && p.align == 0 {
		p.align = '='
	}
	var text string
	if n.IsInt && (p.typ == 0 || strings.IndexByte("bcdoxXn", p.typ) >= 0) {
		text = formatInt(l, p, n)
	} else {
		text = formatFloatSpec(l, p, n.Float(l))
	}
	s := value.Derived(text, cmp.Or(value.Origin(v), from.Field()))
	if p.align == '=' {
		return s
	}
	return align(l, p, p.filler(from), s, '>')
}

// filler returns the fill character. If the specification names one, it is the first of text, with its origin.
func (p spec) filler(text *value.Str) *value.Str {
	if strings.HasPrefix(text.S, p.fill) {
		return text.Slice(0, len(p.fill))
	}
	return value.Lit(p.fill)
}

func align(l *value.Limits, p spec, fill, s *value.Str, def byte) *value.Str {
	pad := int64(p.width - s.RuneCount())
	switch cmp.Or(p.align, def) {
	case '<':
		return Pad(s, l, fill, 0, pad)
	case '^':
		return Pad(s, l, fill, pad/2, pad-pad/2)
	}
	return Pad(s, l, fill, pad, 0)
}

// number puts sign, prefix, grouping and zero padding around digits.
func (p spec) number(l *value.Limits, neg bool, prefix, digits, rest string, group int) string {
	sign := ""
	switch {
	case neg:
		sign = "-"
	case p.sign == '+' || p.sign == ' ':
		sign = string(p.sign)
	}
	if p.width > l.Bytes {
		l.Failf(value.Limit, "width of %d characters, more than %d bytes", p.width, l.Bytes)
		return ""
	}
	room := 0 // width to fill between the sign and the digits
	if p.align == '=' {
		room = max(p.width-len(sign)-len(prefix)-len(rest), 0)
	}
	if p.comma != 0 {
		if n := room - (room-1)/(group+1); p.fill == "0" { // the rest is for separators
			digits = strings.Repeat("0", max(n-len(digits), 0)) + digits
		}
		digits = grouped(digits, p.comma, group)
	}
	digits = strings.Repeat(p.fill, max(room-utf8.RuneCountInString(digits), 0)) + digits
	return sign + prefix + digits + rest
}

func grouped(digits string, sep byte, n int) string {
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%n == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func formatInt(l *value.Limits, p spec, n value.Number) string {
	if p.prec >= 0 {
		l.Failf(value.Other, "Precision not allowed in integer format specifier")
	}
	if p.noNeg {
		l.Failf(value.Other, "Negative zero coercion (z) not allowed in integer format specifier")
	}
	if n.B != nil && !l.Digits(n.B.BitLen()/8) {
		return ""
	}
	b := new(big.Int).Abs(n.Big())
	neg := n.Big().Sign() < 0
	base, prefix, group := 10, "", 3
	switch p.typ {
	case 'b':
		base, prefix, group = 2, "0b", 4
	case 'o':
		base, prefix, group = 8, "0o", 4
	case 'x':
		base, prefix, group = 16, "0x", 4
	case 'X':
		base, prefix, group = 16, "0X", 4
	case 'c':
		if p.sign != 0 || p.alt {
			l.Failf(value.Other, "Sign and # not allowed with integer format specifier 'c'")
		}
		if !n.Big().IsInt64() || n.I < 0 || n.I > utf8.MaxRune {
			l.Failf(value.Other, "%%c arg not in range(0x110000)")
		}
		return string(rune(n.I))
	default:
		if b.BitLen() > value.MaxDigits*4 {
			l.Failf(value.Other, "Exceeds the limit (%d digits) for integer string conversion", value.MaxDigits)
			return ""
		}
	}
	if !p.alt {
		prefix = ""
	}
	digits := b.Text(base)
	if p.typ == 'X' {
		digits = strings.ToUpper(digits)
	}
	return p.number(l, neg, prefix, digits, "", group)
}

func formatFloatSpec(l *value.Limits, p spec, f float64) string {
	neg := math.Signbit(f) && !math.IsNaN(f)
	f = math.Abs(f)
	prec := p.prec
	if prec > l.Bytes {
		l.Failf(value.Limit, "precision of %d digits, more than %d bytes", prec, l.Bytes)
	}
	if l.Float(f); !l.Make(max(prec, 0)) {
		return ""
	}
	var text string
	typ := p.typ
	percent := ""
	if typ == '%' {
		percent = "%"
	}
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		text = pytext.Float(f)
		if typ == 'F' || typ == 'E' || typ == 'G' {
			text = strings.ToUpper(text)
		}
		return p.number(l, neg, "", text, percent, 3)
	case typ == 0 && prec < 0:
		if text = pytext.Float(f); p.alt {
			text = pointed(text)
		}
	case typ == 0:
		text = general(f, max(prec, 1), p.alt, true)
	case typ == 'e' || typ == 'E' || typ == 'f' || typ == 'F' || typ == '%':
		if prec < 0 {
			prec = 6
		}
		format := byte('f')
		if typ|0x20 == 'e' {
			format = 'e'
		}
		if typ == '%' {
			f *= 100
		}
		text = strconv.FormatFloat(f, format, prec, 64)
		if p.alt {
			text = pointed(text)
		}
	case typ == 'g' || typ == 'G' || typ == 'n':
		if prec < 0 {
			prec = 6
		}
		text = general(f, max(prec, 1), p.alt, false)
	default:
		l.Failf(value.Other, "Unknown format code '%c' for object of type 'float'", typ)
	}
	if typ == 'E' || typ == 'G' {
		text = strings.ToUpper(text)
	}
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	if mantissa, _, _ := strings.Cut(strings.ToLower(text), "e"); p.noNeg && strings.Trim(mantissa, "0.") == "" {
		neg = false
	}
	return p.number(l, neg, "", text[:n], text[n:]+percent, 3)
}

// general formats f in the g format. With repr, whole numbers get ".0".
func general(f float64, prec int, alt, repr bool) string {
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	i := strings.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[i+1:])
	limit := prec
	if repr && exp == prec-1 {
		// format(12.0, '.2') is 1.2e+01, and format(1.0, '.1') 1e+00: the repr style leaves room for ".0"
		limit = prec - 1
	}
	if exp < -4 || exp >= limit {
		mant := e[:i]
		if alt {
			mant = pointed(mant)
		} else if strings.Contains(mant, ".") {
			mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
		}
		return mant + e[i:]
	}
	s := strconv.FormatFloat(f, 'f', max(prec-1-exp, 0), 64)
	if !alt && strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	switch {
	case strings.Contains(s, "."):
	case repr:
		s += ".0"
	case alt:
		s += "."
	}
	return s
}

// pointed returns a decimal text with a point after its whole part.
func pointed(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	n := strings.IndexByte(s+"e", 'e')
	return s[:n] + "." + s[n:]
}
