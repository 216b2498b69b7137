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

// Percent implements the % operator of strings.
func Percent(l *value.Limits, s *value.Str, arg value.Value) *value.Str {
	x := &percent{l: l, s: s, arg: arg, args: []value.Value{arg}}
	if list, ok := arg.(*value.List); ok && list.Tuple {
		x.args = list.Items
	}
	t := &value.Text{Lim: l}
	for x.i < len(s.S) && l.Make(fieldSize) {
		j := strings.IndexByte(s.S[x.i:], '%')
		if j < 0 {
			t.Part(s, x.i, len(s.S))
			break
		}
		t.Part(s, x.i, x.i+j)
		x.i += j + 1
		if x.accept("%") {
			t.Lit("%")
			continue
		}
		t.Str(x.field())
		if len(t.B) > l.Bytes {
			l.Failf(value.Limit, "string of more than %d bytes", l.Bytes)
		}
	}
	x.checkAllUsed()
	return s.Like(t)
}

// percent is the state of Percent.
type percent struct {
	l     *value.Limits
	s     *value.Str
	i     int // index of the next byte
	arg   value.Value
	args  []value.Value // the items of a tuple, else only arg
	next  int
	keyed bool // a field named its argument
}

// accept skips the next byte if it is one of chars, and reports whether it did.
func (x *percent) accept(chars string) bool {
	if x.i == len(x.s.S) || strings.IndexByte(chars, x.s.S[x.i]) < 0 {
		return false
	}
	x.i++
	return true
}

// field formats the field after a %.
func (x *percent) field() *value.Str {
	p, left := spec{fill: " ", prec: -1}, false
	v := x.named()
	for x.accept("#0- +") {
		switch x.s.S[x.i-1] {
		case '#':
			p.alt = true
		case '0':
			p.zero = true
		case '-':
			left = true
		case '+':
			p.sign = '+'
		case ' ':
			p.sign = cmp.Or(p.sign, ' ')
		}
	}
	if p.width = x.number(); p.width < 0 {
		left, p.width = true, -p.width
	}
	if x.accept(".") {
		p.prec = max(x.number(), 0)
	}
	x.accept("hlL")
	if x.i >= len(x.s.S) {
		x.l.Failf(value.Other, "incomplete format")
		return value.Empty
	}
	conv := x.s.S[x.i]
	x.i++
	if v == nil {
		v = x.nextArg()
	}
	p.zero = p.zero && !left
	if x.l.Err != nil {
		return value.Empty
	}
	piece := percentPiece(x.l, p, conv, v, x.s.Markup)
	p.fill, p.align = " ", '>'
	if left {
		p.align = '<'
	}
	return align(x.l, p, value.Lit(p.fill), piece, '>')
}

// named returns the argument that a field names in parentheses, nil if it names none.
func (x *percent) named() value.Value {
	if !x.accept("(") {
		return nil
	}
	from := x.i
	for depth := 1; depth > 0; x.i++ {
		if x.i == len(x.s.S) {
			return x.l.Failf(value.Other, "incomplete format key")
		}
		switch x.s.S[x.i] {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	if u, ok := x.arg.(*value.Undefined); ok {
		return x.l.Fail(u.Use())
	}
	dict, ok := x.arg.(*value.Dict)
	if !ok {
		return x.l.Failf(value.Type, "format requires a mapping")
	}
	name := x.s.S[from : x.i-1]
	x.keyed = true
	if v := dict.GetString(name); v != nil {
		return v
	}
	return x.l.Failf(value.Other, "'%s'", name)
}

// number reads a width or a precision, 0 if there is none.
func (x *percent) number() int {
	if x.accept("*") {
		v := x.nextArg()
		n, ok := value.AsInt(v)
		switch {
		case !value.IsInt(v):
			x.l.Failf(value.Type, "* wants int")
		case !ok:
			x.l.Failf(value.Other, "Python int too large to convert to C ssize_t")
		}
		return int(max(min(n, math.MaxInt32), -math.MaxInt32))
	}
	from := x.i
	for x.accept("0123456789") {
	}
	if x.i == from {
		return 0
	}
	n, err := strconv.Atoi(x.s.S[from:x.i])
	if err != nil || n > math.MaxInt32 {
		x.l.Failf(value.Other, "width too big")
	}
	return n
}

// nextArg returns the next argument.
func (x *percent) nextArg() value.Value {
	if x.next >= len(x.args) {
		return x.l.Failf(value.Type, "not enough arguments for format string")
	}
	x.next++
	return x.args[x.next-1]
}

// checkAllUsed fails if an argument was not used, except for arguments that can be indexed by a key.
func (x *percent) checkAllUsed() {
	if x.next == len(x.args) || x.keyed {
		return
	}
	switch arg := x.arg.(type) {
	case *value.Dict, *value.Range, *value.Undefined, *value.Bytes:
		return
	case *value.List:
		if !arg.Tuple {
			return
		}
	}
	x.l.Failf(value.Type, "not all arguments converted during string formatting")
}

func percentPiece(l *value.Limits, p spec, conv byte, v value.Value, markup bool) *value.Str {
	switch conv {
	case 's', 'r', 'a':
		piece := converted(l, v, rune(conv))
		if markup {
			if x, ok := v.(*value.Str); !ok || !x.Markup {
				piece = Escape(piece, l).Plain()
			}
		}
		if p.prec >= 0 {
			piece = piece.Slice(0, forward(piece.S, 0, p.prec))
		}
		return piece
	case 'c':
		if x, ok := v.(*value.Str); ok && x.RuneCount() == 1 {
			return x
		}
		n, ok := value.AsInt(v)
		switch {
		case ok && n >= 0 && n <= utf8.MaxRune:
		case value.IsInt(v):
			l.Failf(value.Other, "%%c arg not in range(0x110000)")
		default:
			l.Failf(value.Type, "%%c requires int or char")
		}
		return value.Derived(string(rune(n)), value.Origin(v))
	}
	if strings.IndexByte("diuoxXeEfFgG", conv) < 0 {
		l.Failf(value.Other, "unsupported format character '%c' (0x%x)", conv, conv)
	}
	if u, ok := v.(*value.Undefined); ok {
		if conv == 'x' || conv == 'X' || conv == 'o' { // Python requires an index, not a number
			l.Failf(value.Type, "%%%c format: an integer is required, not Undefined", conv)
		}
		l.Fail(u.Use())
	}
	if l.Err != nil {
		return value.Empty
	}
	return value.Derived(percentNumber(l, p, conv, v), value.Origin(v))
}

func percentNumber(l *value.Limits, p spec, conv byte, v value.Value) string {
	n, decimal := value.NumberOf(v), conv == 'd' || conv == 'i' || conv == 'u'
	if strings.IndexByte("eEfFgG", conv) >= 0 {
		f := value.ToFloat(l, v)
		if p.zero {
			p.align, p.fill = '=', "0"
		}
		p.typ = conv
		return formatFloatSpec(l, p, f)
	}
	if !n.OK() || n.IsFloat && !decimal {
		l.Failf(value.Type, "%%%c format: a real number is required, not %s", conv, v.TypeName())
		return ""
	}
	if n.IsFloat {
		n = value.NumberOf(Whole(l, math.Trunc(n.F)))
	}
	if p.typ = conv; decimal {
		p.typ = 'd'
	}
	digits := p.prec
	if p.prec = -1; digits >= 0 {
		if wide := precisionWidth(l, p, n, digits); wide > 0 {
			p.width, p.zero = wide, true
		}
	}
	if p.zero {
		p.align, p.fill = '=', "0"
	}
	return formatInt(l, p, n)
}

// precisionWidth returns the width that zero-pads n to the number of digits of its precision, 0 if it has enough. A zero
// flag also pads to the field's width.
func precisionWidth(l *value.Limits, p spec, n value.Number, digits int) int {
	if b := n.Big().BitLen() / 8; !l.Product(b, b) {
		return 0
	}
	base, ok := map[byte]int{'o': 8, 'x': 16, 'X': 16}[p.typ]
	if !ok {
		base = 10
	}
	has := len(new(big.Int).Abs(n.Big()).Text(base))
	if digits > l.Bytes {
		l.Failf(value.Limit, "precision of %d digits, more than %d bytes", digits, l.Bytes)
	}
	if has >= digits {
		return 0
	}
	if n.Big().Sign() < 0 || p.sign != 0 {
		digits++
	}
	if p.alt && base != 10 {
		digits += 2
	}
	if p.zero {
		digits = max(digits, p.width)
	}
	return digits
}

// asciiOf returns s with all characters beyond ASCII escaped, as Python's ascii() does with a repr.
func asciiOf(s *value.Str, l *value.Limits) *value.Str {
	if isASCII(s.S) {
		return s
	}
	t := &value.Text{Lim: l}
	t.Mapped(s, func(rest string) (int, string) {
		r, n := utf8.DecodeRuneInString(rest)
		if r < utf8.RuneSelf {
			return n, rest[:n]
		}
		return n, pytext.Escape(r)
	})
	return t.Own()
}
