package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a Python format specification.
type spec struct {
	fill      string
	align     byte // < > = ^ or 0
	sign      byte // + - space or 0
	alt, zero bool
	width     int
	comma     byte // , or _ or 0
	prec      int  // -1: none
	typ       byte // 0: none
}

func parseSpec(s string) (spec, *Fault) {
	p := spec{fill: " ", prec: -1}
	isAlign := func(c byte) bool { return c == '<' || c == '>' || c == '=' || c == '^' }
	if s != "" {
		if n := runeLen(s); len(s) > n && isAlign(s[n]) {
			p.fill, p.align, s = s[:n], s[n], s[n+1:]
		} else if isAlign(s[0]) {
			p.align, s = s[0], s[1:]
		}
	}
	if s != "" && (s[0] == '+' || s[0] == '-' || s[0] == ' ') {
		p.sign, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, "z") {
		s = s[1:]
	}
	if strings.HasPrefix(s, "#") {
		p.alt, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") {
		p.zero, s = true, s[1:]
		if p.align == 0 {
			p.align, p.fill = '=', "0"
		}
	}
	num := func() (int, bool) {
		n := 0
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		v, err := strconv.Atoi(s[:n])
		ok := n > 0
		if err != nil && ok {
			v = math.MaxInt32
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
			return p, valueError("Format specifier missing precision")
		}
		p.prec = n
	}
	if len(s) > 1 {
		return p, valueError("Invalid format specifier")
	}
	if s != "" {
		p.typ = s[0]
	}
	return p, nil
}

// FormatValue is Python's format(v, spec).
func FormatValue(l *Limits, v Value, specText string, track bool) (*Str, *Fault) {
	if specText == "" {
		return ToStr(l, v, track)
	}
	switch x := v.(type) {
	case *Str:
		p, fault := parseSpec(specText)
		if fault != nil {
			return nil, fault
		}
		if p.typ != 0 && p.typ != 's' {
			return nil, valueError("Unknown format code '%c' for object of type 'str'", p.typ)
		}
		if p.sign != 0 || p.comma != 0 || p.alt || (p.align == '=' && !p.zero) {
			return nil, valueError("format specifier not allowed in string format specifier")
		}
		s := x.Plain()
		if p.prec >= 0 {
			s = s.Slice(0, forward(s.S, 0, p.prec))
		}
		return align(l, p, s, '<')
	case *Bool, *Int, *Float:
		p, fault := parseSpec(specText)
		if fault != nil {
			return nil, fault
		}
		n := numberOf(v)
		if x, ok := v.(*Bool); ok && p.typ == 0 {
			_ = x
			p.typ = 'd'
		}
		var text string
		if n.isInt && (p.typ == 0 || strings.IndexByte("bcdoxXn", p.typ) >= 0) {
			text, fault = formatInt(l, p, n)
		} else {
			var f float64
			if f, fault = n.float(); fault == nil {
				text, fault = formatFloatSpec(l, p, f)
			}
		}
		if fault != nil {
			return nil, fault
		}
		s := &Str{S: text}
		if f := Origin(v); f != nil && track {
			s.Runs = []Run{{F: f, N: int32(len(text)), End: int32(len(text)), Changed: true}}
		}
		if p.align == '=' || p.zero {
			return s, nil
		}
		return align(l, p, s, '>')
	}
	return nil, typeError("unsupported format string passed to %s.__format__", v.TypeName())
}

func align(l *Limits, p spec, s *Str, def byte) (*Str, *Fault) {
	a := p.align
	if a == 0 || (a == '=' && def == '<') {
		a = def
	}
	pad := int64(p.width - s.RuneCount())
	fill := Lit(p.fill)
	switch a {
	case '<':
		return s.Pad(l, fill, 0, pad)
	case '^':
		return s.Pad(l, fill, pad/2, pad-pad/2)
	}
	return s.Pad(l, fill, pad, 0)
}

// number puts sign, prefix, grouping and zero padding around digits.
func (p spec) number(l *Limits, neg bool, prefix, digits, rest string, group int) (string, *Fault) {
	sign := ""
	switch {
	case neg:
		sign = "-"
	case p.sign == '+' || p.sign == ' ':
		sign = string(p.sign)
	}
	if p.width > l.Bytes {
		return "", limitError("width of %d characters, more than %d bytes", p.width, l.Bytes)
	}
	if p.align == '=' {
		room := p.width - len(sign) - len(prefix) - len(rest)
		if p.comma != 0 && p.fill == "0" {
			for len(grouped(digits, p.comma, group)) < room {
				digits = "0" + digits
			}
			if g := grouped(digits, p.comma, group); len(g) > room && digits[0] == '0' && len(g)-room == 1 && g[1] == p.comma {
				_ = g
			}
			digits = grouped(digits, p.comma, group)
		} else {
			if p.comma != 0 {
				digits = grouped(digits, p.comma, group)
			}
			if n := room - utf8.RuneCountInString(digits); n > 0 {
				digits = strings.Repeat(p.fill, n) + digits
			}
		}
	} else if p.comma != 0 {
		digits = grouped(digits, p.comma, group)
	}
	return sign + prefix + digits + rest, nil
}

func grouped(digits string, sep byte, n int) string {
	for i := len(digits) - n; i > 0; i -= n {
		digits = digits[:i] + string(sep) + digits[i:]
	}
	return digits
}

func formatInt(l *Limits, p spec, n number) (string, *Fault) {
	if p.prec >= 0 {
		return "", valueError("Precision not allowed in integer format specifier")
	}
	b := new(big.Int).Abs(n.big())
	neg := n.big().Sign() < 0
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
		if !n.big().IsInt64() || n.i < 0 || n.i > utf8.MaxRune {
			return "", valueError("%%c arg not in range(0x110000)")
		}
		return string(rune(n.i)), nil
	default:
		if b.BitLen() > maxDigits*4 {
			return "", valueError("Exceeds the limit (%d digits) for integer string conversion", maxDigits)
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

func formatFloatSpec(l *Limits, p spec, f float64) (string, *Fault) {
	neg := math.Signbit(f) && !math.IsNaN(f)
	f = math.Abs(f)
	prec := p.prec
	if prec > l.Bytes {
		return "", limitError("precision of %d digits, more than %d bytes", prec, l.Bytes)
	}
	var text string
	typ := p.typ
	percent := ""
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		text = map[bool]string{true: "nan", false: "inf"}[math.IsNaN(f)]
		if typ == 'F' || typ == 'E' || typ == 'G' {
			text = strings.ToUpper(text)
		}
		if typ == '%' {
			percent = "%"
		}
		return p.number(l, neg, "", text, percent, 3)
	case typ == 0 && prec < 0:
		text = FormatFloat(f)
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
			percent = "%"
		}
		text = strconv.FormatFloat(f, format, prec, 64)
		if p.alt && prec == 0 {
			text += "."
		}
	case typ == 'g' || typ == 'G' || typ == 'n':
		if prec < 0 {
			prec = 6
		}
		text = general(f, max(prec, 1), p.alt, false)
	default:
		return "", valueError("Unknown format code '%c' for object of type 'float'", typ)
	}
	if typ == 'E' || typ == 'G' {
		text = strings.ToUpper(text)
	}
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return p.number(l, neg, "", text[:n], text[n:]+percent, 3)
}

// general is the g format; repr asks for a ".0" on whole numbers.
func general(f float64, prec int, alt, repr bool) string {
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	i := strings.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[i+1:])
	limit := prec
	if repr && exp == prec-1 && prec > 1 {
		// format(12.0, '.2') is 1.2e+01: the repr style leaves room for ".0"
		limit = prec - 1
	}
	if exp < -4 || exp >= limit {
		mant := e[:i]
		if !alt && strings.Contains(mant, ".") {
			mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
		}
		return mant + e[i:]
	}
	s := strconv.FormatFloat(f, 'f', max(prec-1-exp, 0), 64)
	if !alt && strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if repr && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Percent is the % operator of strings.
func Percent(l *Limits, s *Str, arg Value) (*Str, *Fault) {
	tuple, isTuple := arg.(*List)
	isTuple = isTuple && tuple.Tuple
	args := []Value{arg}
	if isTuple {
		args = tuple.Items
	}
	dict, isDict := arg.(*Dict)
	t := &Text{Track: true}
	next := 0
	take := func() (Value, *Fault) {
		if next >= len(args) {
			return nil, typeError("not enough arguments for format string")
		}
		next++
		return args[next-1], nil
	}
	takeInt := func() (int, *Fault) {
		v, fault := take()
		if fault != nil {
			return 0, fault
		}
		n, ok := AsInt(v)
		if !ok {
			return 0, typeError("* wants int")
		}
		return int(max(min(n, math.MaxInt32), -math.MaxInt32)), nil
	}
	keyed := false
	for i := 0; i < len(s.S); {
		j := strings.IndexByte(s.S[i:], '%')
		if j < 0 {
			t.Part(s, i, len(s.S))
			break
		}
		t.Part(s, i, i+j)
		i += j + 1
		p := spec{fill: " ", prec: -1}
		var v Value
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
				return nil, valueError("incomplete format key")
			}
			if !isDict {
				return nil, typeError("format requires a mapping")
			}
			name := s.S[i+1 : k-1]
			if v = dict.GetString(name); v == nil {
				return nil, Faultf(Other, "'%s'", name)
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
		number := func() (int, *Fault) {
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
				return 0, valueError("width too big")
			}
			return n, nil
		}
		var fault *Fault
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
			return nil, valueError("incomplete format")
		}
		conv := s.S[i]
		i++
		if conv == '%' {
			t.Lit("%")
			continue
		}
		if v == nil {
			if v, fault = take(); fault != nil {
				return nil, fault
			}
		}
		piece, fault := percentPiece(l, p, conv, v, s.Markup)
		if fault != nil {
			return nil, fault
		}
		p.fill, p.align = " ", '>'
		if left {
			p.align = '<'
		}
		if piece, fault = align(l, p, piece, '>'); fault != nil {
			return nil, fault
		}
		t.Str(piece)
		if len(t.B) > l.Bytes {
			return nil, limitError("string of more than %d bytes", l.Bytes)
		}
	}
	if next < len(args) && !keyed && !isDict {
		switch arg.(type) {
		case *Str:
		case *List, *Range, *View:
			if !isTuple {
				return s.like(t), nil
			}
		}
		return nil, typeError("not all arguments converted during string formatting")
	}
	return s.like(t), nil
}

func percentPiece(l *Limits, p spec, conv byte, v Value, markup bool) (*Str, *Fault) {
	switch conv {
	case 's', 'r', 'a':
		t := &Text{Track: true}
		var fault *Fault
		if conv == 's' {
			fault = WriteStr(t, l, v)
		} else {
			fault = WriteRepr(t, l, v, l.Depth)
		}
		if fault != nil {
			return nil, fault
		}
		piece := t.Value()
		if markup {
			if x, ok := v.(*Str); !ok || !x.Markup {
				piece = piece.Escape().Plain()
			}
		}
		if p.prec >= 0 {
			piece = piece.Slice(0, forward(piece.S, 0, p.prec))
		}
		return piece, nil
	case 'c':
		if x, ok := v.(*Str); ok && x.RuneCount() == 1 {
			return x, nil
		}
		if n, ok := AsInt(v); ok && n >= 0 && n <= utf8.MaxRune {
			return Lit(string(rune(n))), nil
		}
		return nil, typeError("%%c requires int or char")
	}
	if u, ok := v.(*Undefined); ok {
		return nil, u.Use()
	}
	n := numberOf(v)
	switch conv {
	case 'd', 'i', 'u', 'o', 'x', 'X':
		if !n.ok() || (n.isFloat && conv != 'd' && conv != 'i' && conv != 'u') {
			return nil, typeError("%%%c format: a real number is required, not %s", conv, v.TypeName())
		}
		if n.isFloat {
			if math.IsNaN(n.f) || math.IsInf(n.f, 0) {
				return nil, valueError("cannot convert float %s to integer", FormatFloat(n.f))
			}
			b, _ := big.NewFloat(math.Trunc(n.f)).Int(nil)
			n = number{isInt: true, b: b}
		}
		if p.prec >= 0 {
			digits := new(big.Int).Abs(n.big()).Text(map[byte]int{'o': 8, 'x': 16, 'X': 16}[conv] + map[bool]int{true: 10}[conv == 'd' || conv == 'i' || conv == 'u'])
			if p.prec > l.Bytes {
				return nil, limitError("precision of %d digits, more than %d bytes", p.prec, l.Bytes)
			}
			if pad := p.prec - len(digits); pad > 0 {
				q := p
				q.prec, q.align, q.fill = -1, '=', "0"
				q.width = p.prec
				if n.big().Sign() < 0 || p.sign != 0 {
					q.width++
				}
				if p.alt && conv != 'd' && conv != 'i' && conv != 'u' {
					q.width += 2
				}
				return percentInt(l, q, conv, n, v)
			}
			p.prec = -1
		}
		if p.zero {
			p.align, p.fill = '=', "0"
		}
		return percentInt(l, p, conv, n, v)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !n.ok() {
			if _, isStr := v.(*Str); isStr || true {
				return nil, typeError("must be real number, not %s", v.TypeName())
			}
		}
		f, fault := n.float()
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
		return fromScalar(text, v), nil
	}
	return nil, valueError("unsupported format character '%c' (0x%x)", conv, conv)
}

func percentInt(l *Limits, p spec, conv byte, n number, v Value) (*Str, *Fault) {
	p.typ = conv
	if conv == 'i' || conv == 'u' {
		p.typ = 'd'
	}
	p.prec = -1
	text, fault := formatInt(l, p, n)
	if fault != nil {
		return nil, fault
	}
	return fromScalar(text, v), nil
}

func fromScalar(text string, v Value) *Str {
	s := &Str{S: text}
	if f := Origin(v); f != nil {
		s.Runs = []Run{{F: f, N: int32(len(text)), End: int32(len(text)), Changed: true}}
	}
	return s
}

// FormatArgs are what the fields of str.format refer to.
type FormatArgs struct {
	Pos  []Value
	Kw   func(name string) (Value, *Fault) // nil value: no such name
	Attr func(obj Value, name string) (Value, *Fault)
	Item func(obj Value, key Value) (Value, *Fault)
}

// Format is str.format.
func Format(l *Limits, s *Str, args FormatArgs) (*Str, *Fault) {
	t := &Text{Track: true}
	auto := 0
	if fault := format(t, l, s, 0, len(s.S), &args, &auto, 2); fault != nil {
		return nil, fault
	}
	return s.like(t), nil
}

// format expands s.S[i:j] into t. auto is the next automatic index, -1 once
// fields were numbered by hand.
func format(t *Text, l *Limits, s *Str, i, j int, args *FormatArgs, auto *int, depth int) *Fault {
	if depth < 0 {
		return valueError("Max string recursion exceeded")
	}
	for i < j {
		k := strings.IndexAny(s.S[i:j], "{}")
		if k < 0 {
			t.Part(s, i, j)
			return nil
		}
		t.Part(s, i, i+k)
		i += k
		if i+1 < j && s.S[i+1] == s.S[i] {
			t.Part(s, i, i+1)
			i += 2
			continue
		}
		if s.S[i] == '}' {
			return valueError("Single '}' encountered in format string")
		}
		open, end := 1, i+1
		for end < j && open > 0 {
			switch s.S[end] {
			case '{':
				open++
			case '}':
				open--
			}
			end++
		}
		if open > 0 {
			return valueError("expected '}' before end of string")
		}
		if fault := formatField(t, l, s, i+1, end-1, args, auto, depth); fault != nil {
			return fault
		}
		i = end
		if len(t.B) > l.Bytes {
			return limitError("string of more than %d bytes", l.Bytes)
		}
	}
	return nil
}

func formatField(t *Text, l *Limits, s *Str, i, j int, args *FormatArgs, auto *int, depth int) *Fault {
	body := s.S[i:j]
	end := len(body)
	for k, bracket := 0, false; k < len(body); k++ {
		c := body[k]
		if c == '[' {
			bracket = true
		}
		if c == ']' {
			bracket = false
		}
		if !bracket && (c == '!' || c == ':') {
			end = k
			break
		}
	}
	name, rest := body[:end], body[end:]
	conv := byte(0)
	if strings.HasPrefix(rest, "!") {
		if len(rest) < 2 {
			return valueError("end of string while looking for conversion specifier")
		}
		conv = rest[1]
		rest = rest[2:]
		if rest != "" && rest[0] != ':' {
			return valueError("expected ':' after conversion specifier")
		}
	}
	v, fault := lookupField(name, args, auto)
	if fault != nil {
		return fault
	}
	switch conv {
	case 0:
	case 's':
		if v, fault = ToStr(l, v, true); fault != nil {
			return fault
		}
	case 'r', 'a':
		r := &Text{Track: true}
		if fault := WriteRepr(r, l, v, l.Depth); fault != nil {
			return fault
		}
		v = r.Value()
	default:
		return valueError("Unknown conversion specifier %c", conv)
	}
	specText := ""
	if rest != "" {
		inner := &Text{}
		at := j - len(rest) + 1
		if fault := format(inner, l, s, at, j, args, auto, depth-1); fault != nil {
			return fault
		}
		specText = string(inner.B)
	}
	out, fault := FormatValue(l, v, specText, true)
	if fault != nil {
		return fault
	}
	if s.Markup {
		if x, ok := v.(*Str); !ok || !x.Markup {
			out = out.Escape()
		}
	}
	t.Str(out)
	return nil
}

func lookupField(name string, args *FormatArgs, auto *int) (Value, *Fault) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	var v Value
	index, err := strconv.Atoi(first)
	switch {
	case first == "":
		if *auto < 0 {
			return nil, valueError("cannot switch from manual field specification to automatic field numbering")
		}
		index = *auto
		*auto++
		err = nil
	case err == nil:
		if *auto > 0 {
			return nil, valueError("cannot switch from automatic field numbering to manual field specification")
		}
		*auto = -1
	}
	if err == nil {
		if index < 0 || index >= len(args.Pos) {
			return nil, Faultf(Other, "Replacement index %d out of range for positional args tuple", index)
		}
		v = args.Pos[index]
	} else {
		var fault *Fault
		if v, fault = args.Kw(first); fault != nil {
			return nil, fault
		}
		if v == nil {
			return nil, Faultf(Other, "'%s'", first)
		}
	}
	for rest != "" {
		var fault *Fault
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			if n == 1 {
				return nil, valueError("Empty attribute in format string")
			}
			v, fault = args.Attr(v, rest[1:n])
			rest = rest[n:]
		} else {
			n := strings.IndexByte(rest, ']')
			if n < 0 {
				return nil, valueError("Missing ']' in format string")
			}
			if n == 1 {
				return nil, valueError("Empty attribute in format string")
			}
			var key Value = Lit(rest[1:n])
			if i, err := strconv.ParseInt(rest[1:n], 10, 64); err == nil {
				key = NewInt(i)
			}
			v, fault = args.Item(v, key)
			rest = rest[n+1:]
			if fault == nil && rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, valueError("Only '.' or '[' may follow ']' in format field specifier")
			}
		}
		if fault != nil {
			return nil, fault
		}
	}
	return v, nil
}
