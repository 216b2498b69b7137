package py

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// Percent is the % operator of strings.
func Percent(l *value.Limits, s *value.Str, arg value.Value) (*value.Str, *value.Fault) {
	tuple, isTuple := arg.(*value.List)
	isTuple = isTuple && tuple.Tuple
	args := []value.Value{arg}
	if isTuple {
		args = tuple.Items
	}
	dict, isDict := arg.(*value.Dict)
	t := &value.Text{Track: true, Lim: l}
	next := 0
	take := func() (value.Value, *value.Fault) {
		if next >= len(args) {
			return nil, value.TypeError("not enough arguments for format string")
		}
		next++
		return args[next-1], nil
	}
	takeInt := func() (int, *value.Fault) {
		v, fault := take()
		if fault != nil {
			return 0, fault
		}
		n, ok := value.AsInt(v)
		switch {
		case !value.IsInt(v):
			return 0, value.TypeError("* wants int")
		case !ok:
			return 0, value.ValueError("Python int too large to convert to C ssize_t")
		}
		return int(max(min(n, math.MaxInt32), -math.MaxInt32)), nil
	}
	keyed := false
	for i := 0; i < len(s.S) && l.Make(fieldSize); {
		j := strings.IndexByte(s.S[i:], '%')
		if j < 0 {
			t.Part(s, i, len(s.S))
			break
		}
		t.Part(s, i, i+j)
		i += j + 1
		if i < len(s.S) && s.S[i] == '%' {
			t.Lit("%")
			i++
			continue
		}
		p := spec{fill: " ", prec: -1}
		var v value.Value
		if i < len(s.S) && s.S[i] == '(' {
			depth, k := 1, i+1
			for k < len(s.S) && depth > 0 {
				switch s.S[k] {
				case '(':
					depth++
				case ')':
					depth--
				}
				k++
			}
			if depth > 0 {
				return nil, value.ValueError("incomplete format key")
			}
			if u, ok := arg.(*value.Undefined); ok {
				return nil, u.Use()
			}
			if !isDict {
				return nil, value.TypeError("format requires a mapping")
			}
			name := s.S[i+1 : k-1]
			if v = dict.GetString(name); v == nil {
				return nil, value.Faultf(value.Other, "'%s'", name)
			}
			keyed = true
			i = k
		}
		left := false
		for i < len(s.S) && strings.IndexByte("#0- +", s.S[i]) >= 0 {
			switch s.S[i] {
			case '#':
				p.alt = true
			case '0':
				p.zero = true
			case '-':
				left = true
			case '+':
				p.sign = '+'
			case ' ':
				if p.sign == 0 {
					p.sign = ' '
				}
			}
			i++
		}
		number := func() (int, *value.Fault) {
			if i < len(s.S) && s.S[i] == '*' {
				i++
				return takeInt()
			}
			k := i
			for i < len(s.S) && isDigit(s.S[i]) {
				i++
			}
			if k == i {
				return 0, nil
			}
			n, err := strconv.Atoi(s.S[k:i])
			if err != nil || n > math.MaxInt32 {
				return 0, value.ValueError("width too big")
			}
			return n, nil
		}
		var fault *value.Fault
		if p.width, fault = number(); fault != nil {
			return nil, fault
		}
		if p.width < 0 {
			left, p.width = true, -p.width
		}
		if i < len(s.S) && s.S[i] == '.' {
			i++
			if p.prec, fault = number(); fault != nil {
				return nil, fault
			}
			p.prec = max(p.prec, 0)
		}
		for i < len(s.S) && strings.IndexByte("hlL", s.S[i]) >= 0 {
			i++
		}
		if i >= len(s.S) {
			return nil, value.ValueError("incomplete format")
		}
		conv := s.S[i]
		i++
		if v == nil {
			if v, fault = take(); fault != nil {
				return nil, fault
			}
		}
		p.zero = p.zero && !left
		piece, fault := percentPiece(l, p, conv, v, s.Markup)
		if fault != nil {
			return nil, fault
		}
		p.fill, p.align = " ", '>'
		if left {
			p.align = '<'
		}
		if piece, fault = align(l, p, value.Lit(p.fill), piece, '>'); fault != nil {
			return nil, fault
		}
		t.Str(piece)
		if len(t.B) > l.Bytes {
			return nil, value.LimitError("string of more than %d bytes", l.Bytes)
		}
	}
	if fault := l.Over(); fault != nil { // what is left was not looked at
		return nil, fault
	}
	if next < len(args) && !keyed && !isDict {
		switch arg.(type) {
		case *value.Str:
		case *value.List, *value.Range, *value.Undefined, *value.Bytes: // they could be indexed by a key
			if !isTuple {
				return s.Like(t), nil
			}
		}
		return nil, value.TypeError("not all arguments converted during string formatting")
	}
	return s.Like(t), nil
}

func percentPiece(l *value.Limits, p spec, conv byte, v value.Value, markup bool) (*value.Str, *value.Fault) {
	switch conv {
	case 's', 'r', 'a':
		t := &value.Text{Track: true, Lim: l}
		var fault *value.Fault
		if conv == 's' {
			fault = value.WriteStr(t, l, v)
		} else {
			fault = value.WriteRepr(t, l, v, l.Depth)
		}
		if fault != nil {
			return nil, fault
		}
		piece := t.Own()
		if conv == 'a' {
			piece = asciiOf(piece, l)
		}
		if markup {
			if x, ok := v.(*value.Str); !ok || !x.Markup {
				piece = Escape(piece, l).Plain()
			}
		}
		if p.prec >= 0 {
			piece = piece.Slice(0, forward(piece.S, 0, p.prec))
		}
		return piece, nil
	case 'c':
		if x, ok := v.(*value.Str); ok && x.RuneCount() == 1 {
			return x, nil
		}
		if n, ok := value.AsInt(v); ok && n >= 0 && n <= utf8.MaxRune {
			return value.Derived(string(rune(n)), value.Origin(v)), nil
		}
		if value.IsInt(v) {
			return nil, value.ValueError("%%c arg not in range(0x110000)")
		}
		return nil, value.TypeError("%%c requires int or char")
	}
	if strings.IndexByte("diuoxXeEfFgG", conv) < 0 {
		return nil, value.ValueError("unsupported format character '%c' (0x%x)", conv, conv)
	}
	if u, ok := v.(*value.Undefined); ok {
		if conv == 'x' || conv == 'X' || conv == 'o' { // Python asks for an index, not for a number
			return nil, value.TypeError("%%%c format: an integer is required, not Undefined", conv)
		}
		return nil, u.Use()
	}
	n := value.NumberOf(v)
	switch conv {
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !n.OK() {
			return nil, value.TypeError("must be real number, not %s", v.TypeName())
		}
		f, fault := n.Float()
		if fault != nil {
			return nil, fault
		}
		if p.zero {
			p.align, p.fill = '=', "0"
		}
		p.typ = conv
		text, fault := formatFloatSpec(l, p, f)
		if fault != nil {
			return nil, fault
		}
		return value.Derived(text, value.Origin(v)), nil
	default:
		if !n.OK() || (n.IsFloat && conv != 'd' && conv != 'i' && conv != 'u') {
			return nil, value.TypeError("%%%c format: a real number is required, not %s", conv, v.TypeName())
		}
		if n.IsFloat {
			if math.IsNaN(n.F) || math.IsInf(n.F, 0) {
				return nil, value.ValueError("cannot convert float %s to integer", value.FormatFloat(n.F))
			}
			if !l.Float(n.F) {
				return nil, l.Over()
			}
			b, _ := big.NewFloat(math.Trunc(n.F)).Int(nil)
			n = value.Number{IsInt: true, B: b}
		}
		if p.prec >= 0 {
			if b := n.Big().BitLen() / 8; !l.Product(b, b) {
				return nil, l.Over()
			}
			digits := new(big.Int).Abs(n.Big()).Text(map[byte]int{'o': 8, 'x': 16, 'X': 16}[conv] + map[bool]int{true: 10}[conv == 'd' || conv == 'i' || conv == 'u'])
			if p.prec > l.Bytes {
				return nil, value.LimitError("precision of %d digits, more than %d bytes", p.prec, l.Bytes)
			}
			if pad := p.prec - len(digits); pad > 0 {
				q := p
				q.prec, q.align, q.fill = -1, '=', "0"
				q.width = p.prec // of the digits; a zero flag fills up to the width, too
				if n.Big().Sign() < 0 || p.sign != 0 {
					q.width++
				}
				if p.alt && conv != 'd' && conv != 'i' && conv != 'u' {
					q.width += 2
				}
				if p.zero {
					q.width = max(q.width, p.width)
				}
				return percentInt(l, q, conv, n, v)
			}
			p.prec = -1
		}
		if p.zero {
			p.align, p.fill = '=', "0"
		}
		return percentInt(l, p, conv, n, v)
	}
}

func percentInt(l *value.Limits, p spec, conv byte, n value.Number, v value.Value) (*value.Str, *value.Fault) {
	p.typ = conv
	if conv == 'i' || conv == 'u' {
		p.typ = 'd'
	}
	p.prec = -1
	text, fault := formatInt(l, p, n)
	if fault != nil {
		return nil, fault
	}
	return value.Derived(text, value.Origin(v)), nil
}

// asciiOf is s with escapes for all characters beyond ASCII, as Python's ascii()
// makes of a repr.
func asciiOf(s *value.Str, l *value.Limits) *value.Str {
	if isASCII(s.S) {
		return s
	}
	t := l.NewText(s)
	for i := 0; i < len(s.S); {
		r, n := utf8.DecodeRuneInString(s.S[i:])
		if r < utf8.RuneSelf {
			t.Part(s, i, i+n)
		} else {
			t.Changed(value.EscapeRune(r), s, i, i+n)
		}
		i += n
	}
	return t.Own()
}
