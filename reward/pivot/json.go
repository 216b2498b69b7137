package pivot

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// maxDepth bounds the nesting of arguments; the reference's interpreter gives
// up at about the same depth.
const maxDepth = 990

// decode reads one JSON document as Python's json.loads does.
func decode(s string) (value, error) {
	p := parser{s: s}
	p.space()
	v, ok := p.value(0)
	if ok {
		p.space()
		if p.at == len(s) {
			return v, nil
		}
	}
	found := "the end"
	if p.at < len(s) {
		found = strconv.QuoteRune([]rune(s[p.at:min(len(s), p.at+utf8.UTFMax)])[0])
	}
	return value{}, rollout.Errorf(rollout.KindFormat, rollout.Where{Byte: rollout.At(p.at)}, "expected JSON, found %s", found)
}

type parser struct {
	s  string
	at int
}

func (p *parser) space() {
	for p.at < len(p.s) {
		switch p.s[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) accept(word string) bool {
	if strings.HasPrefix(p.s[p.at:], word) {
		p.at += len(word)
		return true
	}
	return false
}

func (p *parser) value(depth int) (value, bool) {
	if p.at >= len(p.s) || depth > maxDepth {
		return value{}, false
	}
	switch p.s[p.at] {
	case '"':
		s, ok := p.text()
		return textValue(s), ok
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
	case 'n':
		return value{}, p.accept("null")
	case 't':
		return value{kind: boolean, bool: true}, p.accept("true")
	case 'f':
		return value{kind: boolean}, p.accept("false")
	}
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if p.accept(word) {
			f, err := strconv.ParseFloat(word, 64)
			return value{kind: float, float: f}, err == nil
		}
	}
	return p.number()
}

func (p *parser) object(depth int) (value, bool) {
	v := value{kind: object, of: map[string]value{}}
	p.at++
	p.space()
	if p.accept("}") {
		return v, true
	}
	for {
		if p.at >= len(p.s) || p.s[p.at] != '"' {
			return v, false
		}
		key, ok := p.text()
		if !ok {
			return v, false
		}
		p.space()
		if !p.accept(":") {
			return v, false
		}
		p.space()
		member, ok := p.value(depth + 1)
		if !ok {
			return v, false
		}
		if _, again := v.of[key]; !again {
			v.keys = append(v.keys, key)
		}
		v.of[key] = member
		p.space()
		if p.accept("}") {
			return v, true
		}
		if !p.accept(",") {
			return v, false
		}
		p.space()
	}
}

func (p *parser) list(depth int) (value, bool) {
	v := value{kind: list}
	p.at++
	p.space()
	if p.accept("]") {
		return v, true
	}
	for {
		element, ok := p.value(depth + 1)
		if !ok {
			return v, false
		}
		v.list = append(v.list, element)
		p.space()
		if p.accept("]") {
			return v, true
		}
		if !p.accept(",") {
			return v, false
		}
		p.space()
	}
}

func (p *parser) digits() int {
	from := p.at
	for p.at < len(p.s) && p.s[p.at] >= '0' && p.s[p.at] <= '9' {
		p.at++
	}
	return p.at - from
}

// number reads the longest number; what follows it is the caller's concern, so
// "1.x" is the integer 1 and then an error.
func (p *parser) number() (value, bool) {
	from := p.at
	p.accept("-")
	if !p.accept("0") && p.digits() == 0 {
		p.at = from
		return value{}, false
	}
	end, isFloat := p.at, false
	if p.accept(".") && p.digits() > 0 {
		end, isFloat = p.at, true
	}
	p.at = end
	if p.accept("e") || p.accept("E") {
		if !p.accept("+") {
			p.accept("-")
		}
		if p.digits() > 0 {
			end, isFloat = p.at, true
		}
	}
	p.at = end
	literal := p.s[from:end]
	if isFloat {
		f, _ := strconv.ParseFloat(literal, 64) // out of range is ±Inf
		return value{kind: float, float: f}, true
	}
	i, ok := new(big.Int).SetString(literal, 10)
	return value{kind: integer, int: i}, ok
}

func (p *parser) text() (string, bool) {
	p.at++
	from := p.at
	for p.at < len(p.s) && p.s[p.at] != '"' && p.s[p.at] != '\\' && p.s[p.at] >= 0x20 {
		p.at++
	}
	if p.at < len(p.s) && p.s[p.at] == '"' {
		p.at++
		return p.s[from : p.at-1], true
	}
	b := []byte(p.s[from:p.at])
	for p.at < len(p.s) {
		c := p.s[p.at]
		switch {
		case c == '"':
			p.at++
			return string(b), true
		case c < 0x20:
			return "", false
		case c != '\\':
			b = append(b, c)
			p.at++
		default:
			var ok bool
			if b, ok = p.escape(b); !ok {
				return "", false
			}
		}
	}
	return "", false
}

func (p *parser) escape(b []byte) ([]byte, bool) {
	if p.at+1 >= len(p.s) {
		p.at = len(p.s)
		return b, false
	}
	c := p.s[p.at+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		p.at += 2
		return append(b, "\"\\/\b\f\n\r\t"[i]), true
	}
	r, ok := p.hex(p.at)
	if !ok {
		return b, false
	}
	p.at += 6
	if r >= 0xd800 && r <= 0xdbff {
		if low, ok := p.hex(p.at); ok && low >= 0xdc00 && low <= 0xdfff {
			p.at += 6
			r = 0x10000 + (r-0xd800)<<10 + low - 0xdc00
		}
	}
	return appendRune(b, r), true
}

// hex reads \uXXXX at i.
func (p *parser) hex(i int) (rune, bool) {
	if i+6 > len(p.s) || p.s[i] != '\\' || p.s[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.s[i+2 : i+6]) {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
