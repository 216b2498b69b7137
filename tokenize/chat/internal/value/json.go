package value

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSONError is a malformed JSON text.
type JSONError struct {
	Offset int
	Msg    string
}

func (e *JSONError) Error() string { return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset) }

const maxJSONDepth = 1000

// ParseJSON reads one JSON text as Python's json.loads does: the order of keys
// is kept, the last of equal keys wins, 1 is an int and 1.0 a float, integers
// have any size, and NaN, Infinity and -Infinity are numbers. A lone surrogate
// becomes U+FFFD.
func ParseJSON(data []byte) (Value, error) {
	p := jsonParser{s: string(data)}
	if !utf8.ValidString(p.s) {
		return nil, &JSONError{0, "invalid UTF-8"}
	}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i < len(p.s) {
		return nil, p.fail("unexpected data after the value")
	}
	return v, nil
}

type jsonParser struct {
	s string
	i int
}

func (p *jsonParser) fail(msg string) error { return &JSONError{p.i, msg} }

func (p *jsonParser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *jsonParser) peek() byte {
	p.space()
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *jsonParser) value(depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, p.fail(fmt.Sprintf("nesting is deeper than %d", maxJSONDepth))
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.str()
		if err != nil {
			return nil, err
		}
		return &Str{S: s}, nil
	case c == '-' || isDigit(c):
		return p.number()
	}
	for word, v := range map[string]Value{"null": Nil, "true": True, "false": False,
		"NaN": &Float{V: nan}, "Infinity": &Float{V: inf}} {
		if len(p.s)-p.i >= len(word) && p.s[p.i:p.i+len(word)] == word {
			p.i += len(word)
			return v, nil
		}
	}
	return nil, p.fail("expected a value")
}

func (p *jsonParser) object(depth int) (Value, error) {
	p.i++
	d := NewDict(4)
	if p.peek() == '}' {
		p.i++
		return d, nil
	}
	for {
		if p.peek() != '"' {
			return nil, p.fail("expected a key in double quotes")
		}
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, p.fail("expected ':'")
		}
		p.i++
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		d.SetString(key, v)
		switch p.peek() {
		case ',':
			p.i++
		case '}':
			p.i++
			return d, nil
		default:
			return nil, p.fail("expected ',' or '}'")
		}
	}
}

func (p *jsonParser) array(depth int) (Value, error) {
	p.i++
	l := &List{Items: []Value{}}
	if p.peek() == ']' {
		p.i++
		return l, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
		switch p.peek() {
		case ',':
			p.i++
		case ']':
			p.i++
			return l, nil
		default:
			return nil, p.fail("expected ',' or ']'")
		}
	}
}

func (p *jsonParser) digits() int {
	start := p.i
	for p.i < len(p.s) && isDigit(p.s[p.i]) {
		p.i++
	}
	return p.i - start
}

func (p *jsonParser) number() (Value, error) {
	start := p.i
	neg := p.s[p.i] == '-'
	if neg {
		p.i++
		if len(p.s)-p.i >= 8 && p.s[p.i:p.i+8] == "Infinity" {
			p.i += 8
			return &Float{V: -inf}, nil
		}
	}
	lead := p.i
	n := p.digits()
	if n == 0 || (n > 1 && p.s[lead] == '0') {
		p.i = lead
		return nil, p.fail("malformed number")
	}
	float := false
	if p.i < len(p.s) && p.s[p.i] == '.' {
		p.i++
		float = true
		if p.digits() == 0 {
			return nil, p.fail("malformed number")
		}
	}
	if p.i < len(p.s) && p.s[p.i]|0x20 == 'e' {
		p.i++
		float = true
		if p.i < len(p.s) && (p.s[p.i] == '+' || p.s[p.i] == '-') {
			p.i++
		}
		if p.digits() == 0 {
			return nil, p.fail("malformed number")
		}
	}
	text := p.s[start:p.i]
	if float {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, p.fail("malformed number")
		}
		return &Float{V: f}, nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return NewInt(i), nil
	}
	if n > maxDigits {
		return nil, p.fail(fmt.Sprintf("integer of more than %d digits", maxDigits))
	}
	b, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, p.fail("malformed number")
	}
	return NewBig(b), nil
}

func (p *jsonParser) str() (string, error) {
	p.i++
	start := p.i
	for p.i < len(p.s) && p.s[p.i] != '"' && p.s[p.i] != '\\' && p.s[p.i] >= ' ' {
		p.i++
	}
	if p.i < len(p.s) && p.s[p.i] == '"' {
		p.i++
		return p.s[start : p.i-1], nil
	}
	b := []byte(p.s[start:p.i])
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case c == '"':
			p.i++
			return string(b), nil
		case c < ' ':
			return "", p.fail("control character in a string")
		case c != '\\':
			b = append(b, c)
			p.i++
			continue
		}
		p.i++
		if p.i >= len(p.s) {
			break
		}
		c = p.s[p.i]
		p.i++
		switch c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, ok := p.hex4()
			if !ok {
				return "", p.fail(`malformed \u escape`)
			}
			if utf16.IsSurrogate(r) {
				save := p.i
				low := rune(0)
				if len(p.s)-p.i >= 6 && p.s[p.i] == '\\' && p.s[p.i+1] == 'u' {
					p.i += 2
					if low, ok = p.hex4(); !ok {
						return "", p.fail(`malformed \u escape`)
					}
				}
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					p.i = save
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			p.i -= 2
			return "", p.fail("unknown escape")
		}
	}
	return "", p.fail("unterminated string")
}

func (p *jsonParser) hex4() (rune, bool) {
	if len(p.s)-p.i < 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 16)
	if err != nil {
		return 0, false
	}
	p.i += 4
	return rune(v), true
}
