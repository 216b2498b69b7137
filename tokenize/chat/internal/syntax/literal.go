package syntax

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
)

// digits skips digits of a class with single underscores between them, and returns the offset after them.
func (l *lexer) digits(i int, ok func(byte) bool) int {
	for i < len(l.src) {
		switch {
		case ok(l.src[i]):
			i++
		case l.src[i] == '_' && i+1 < len(l.src) && ok(l.src[i+1]):
			i += 2
		default:
			return i
		}
	}
	return i
}

func (l *lexer) number() *Error {
	start := l.pos
	dec := func(c byte) bool { return c >= '0' && c <= '9' }
	// A number after a dot is an index (a.0.1), never a float.
	afterDot := start > 0 && l.src[start-1] == '.'
	i := l.digits(start, dec)
	float := false
	if !afterDot {
		if i+1 < len(l.src) && l.src[i] == '.' && dec(l.src[i+1]) {
			i = l.digits(i+1, dec)
			float = true
		}
		if i < len(l.src) && (l.src[i] == 'e' || l.src[i] == 'E') {
			j := i + 1
			if j < len(l.src) && (l.src[j] == '+' || l.src[j] == '-') {
				j++
			}
			if j < len(l.src) && dec(l.src[j]) {
				i = l.digits(j, dec)
				float = true
			}
		}
	}
	if float {
		text := strings.ReplaceAll(l.src[start:i], "_", "")
		f, _ := strconv.ParseFloat(text, 64) // out of range gives ±Inf, as in Python
		l.emit(token{kind: tokFloat, text: text, float: f, pos: Pos(start)})
		l.pos = i
		return nil
	}
	base, from := 10, start
	if l.src[start] == '0' { // only the zeros: 012 is 0, then 12
		i = l.digits(start, func(c byte) bool { return c == '0' })
		if b := prefixed(l.src[start:]); b > 0 {
			j := start + 2
			if strings.HasPrefix(l.src[j:], "_") {
				j++
			}
			if end := l.digits(j, func(c byte) bool { _, err := strconv.ParseUint(string(rune(c)), b, 8); return err == nil }); end > j {
				base, from, i = b, j, end
			}
		}
	}
	digits := strings.ReplaceAll(l.src[from:i], "_", "")
	if base == 10 && len(digits) > 4300 {
		return errorAt(Pos(start), "Exceeds the limit (4300 digits) for integer string conversion")
	}
	n, _ := new(big.Int).SetString(digits, base)
	l.emit(token{kind: tokInt, text: l.src[start:i], int: n, pos: Pos(start)})
	l.pos = i
	return nil
}

// prefixed returns the base that the prefix of s selects, 0 if it has none.
func prefixed(s string) int {
	return map[string]int{"0b": 2, "0o": 8, "0x": 16}[strings.ToLower(s[:min(2, len(s))])]
}

func (l *lexer) str(quote byte) (bool, *Error) {
	start := l.pos
	for i := start + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case quote:
			text, msg := unescape(l.src[start+1 : i])
			if msg != "" {
				return false, errorAt(Pos(start), "%s", msg)
			}
			l.emit(token{kind: tokString, text: text, pos: Pos(start)})
			l.pos = i + 1
			return true, nil
		}
	}
	return false, nil
}

var escapes = strings.NewReplacer("a", "\a", "b", "\b", "f", "\f", "n", "\n", "r", "\r", "t", "\t", "v", "\v")

// unescape decodes the body of a Python string literal. msg is not empty if an escape is malformed.
func unescape(s string) (text, msg string) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i >= len(s) {
			return "", "\\ at end of string"
		}
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"', 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b.WriteString(escapes.Replace(string(c)))
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+n > len(s)-1 {
				return "", "truncated \\" + string(c) + " escape"
			}
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil {
				return "", "truncated \\" + string(c) + " escape"
			}
			if v > unicode.MaxRune {
				return "", "illegal Unicode character"
			}
			b.WriteRune(rune(v))
			i += n
		case 'N':
			return "", "unknown Unicode character name"
		default:
			if c >= '0' && c <= '7' {
				v, n := 0, 0
				for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
					v = v*8 + int(s[i+n]-'0')
					n++
				}
				b.WriteRune(rune(v))
				i += n - 1
				continue
			}
			b.WriteByte('\\')
			if c < utf8.RuneSelf {
				b.WriteByte(c)
				continue
			}
			// Jinja escapes non-ASCII characters before it decodes escapes, so a backslash before one escapes the
			// backslash of that escape.
			r, n := utf8.DecodeRuneInString(s[i:])
			b.WriteString(pytext.Escape(r)[1:])
			i += n - 1
		}
	}
	return b.String(), ""
}
