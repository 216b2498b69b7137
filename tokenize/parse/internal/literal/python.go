package literal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// PythonScan finds the end of a Python expression by its brackets.
type PythonScan struct {
	open    int
	quote   byte
	escaped bool
	begun   bool
}

// End returns how much of in belongs to the expression, and whether the expression ends there.
func (s *PythonScan) End(in string) (int, bool) {
	for i := 0; i < len(in); i++ {
		c := in[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.quote != 0 && c == '\\':
			s.escaped = true
		case s.quote != 0:
			if c == s.quote {
				s.quote = 0
			}
		case c == '\'' || c == '"':
			s.quote = c
		case c == '(' || c == '[' || c == '{':
			s.open++
			s.begun = true
		case c == ')' || c == ']' || c == '}':
			if s.open--; s.open <= 0 && s.begun {
				return i + 1, true
			}
		}
	}
	return len(in), false
}

// Identifier reports whether c may be part of a name.
func Identifier(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

// Call is a call with its arguments as a JSON object.
type Call struct{ Name, Arguments string }

// python parses literals and writes them as JSON. It keeps the first error.
type python struct {
	s   string
	i   int
	err string
}

// Python parses one call, or a list of calls. The second result says what is wrong, "" if nothing.
func Python(s string) ([]Call, string) {
	y := &python{s: s}
	var calls []Call
	if !y.takes('[') {
		calls = append(calls, y.call())
	} else {
		for !y.takes(']') && y.err == "" {
			calls = append(calls, y.call())
			if !y.takes(',') {
				y.want(']')
				break
			}
		}
	}
	if y.skip(); y.i < len(y.s) {
		y.fail("text follows the calls")
	}
	return calls, y.err
}

func (y *python) fail(why string) {
	if y.err == "" {
		y.err = fmt.Sprintf("%s (byte %d of the call)", why, y.i)
		y.i = len(y.s)
	}
}

func (y *python) skip() {
	for y.i < len(y.s) && strings.IndexByte(Space, y.s[y.i]) >= 0 {
		y.i++
	}
}

func (y *python) takes(c byte) bool {
	y.skip()
	if y.i < len(y.s) && y.s[y.i] == c {
		y.i++
		return true
	}
	return false
}

func (y *python) want(c byte) {
	if !y.takes(c) {
		y.fail(fmt.Sprintf("expected %q", c))
	}
}

func (y *python) name() string {
	y.skip()
	from := y.i
	for y.i < len(y.s) && (Identifier(y.s[y.i]) || y.s[y.i] == '.') {
		y.i++
	}
	if from == y.i {
		y.fail("expected a name")
		return ""
	}
	return y.s[from:y.i]
}

func (y *python) call() Call {
	name := y.name()
	y.want('(')
	var b strings.Builder
	seen := map[string]bool{}
	y.sequence(&b, "{}", ')', func() {
		key := y.name()
		y.want('=')
		if seen[key] {
			y.fail("an argument comes twice")
		}
		seen[key] = true
		b.WriteString(Quote(key) + ": ")
		y.value(&b, 0)
	})
	return Call{name, b.String()}
}

// sequence parses items up to the closing bracket, and writes them between the brackets around.
func (y *python) sequence(b *strings.Builder, around string, closing byte, item func()) {
	b.WriteByte(around[0])
	for n := 0; y.err == "" && !y.takes(closing); n++ {
		if n > 0 {
			b.WriteString(", ")
		}
		item()
		if !y.takes(',') {
			y.want(closing)
			break
		}
	}
	b.WriteByte(around[1])
}

func (y *python) value(b *strings.Builder, depth int) {
	y.skip()
	if y.i >= len(y.s) || depth > maxDepth {
		y.fail("expected a value")
		return
	}
	switch c := y.s[y.i]; {
	case c == '\'' || c == '"':
		b.WriteByte('"')
		for y.i < len(y.s) && (y.s[y.i] == '\'' || y.s[y.i] == '"') { // adjacent literals are one string
			b.WriteString(Escaped(y.text()))
			y.skip()
		}
		b.WriteByte('"')
	case c == '[' || c == '(':
		y.i++
		y.sequence(b, "[]", map[byte]byte{'[': ']', '(': ')'}[c], func() { y.value(b, depth+1) })
	case c == '{':
		y.i++
		y.sequence(b, "{}", '}', func() {
			if y.skip(); y.i >= len(y.s) || y.s[y.i] != '\'' && y.s[y.i] != '"' {
				y.fail("a key is no text")
				return
			}
			b.WriteString(Quote(y.text()))
			y.want(':')
			b.WriteString(": ")
			y.value(b, depth+1)
		})
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		from := y.i
		for y.i < len(y.s) && (Identifier(y.s[y.i]) || strings.IndexByte("+-.", y.s[y.i]) >= 0) {
			y.i++
		}
		switch text := strings.ReplaceAll(y.s[from:y.i], "_", ""); {
		case isInteger(text):
			b.WriteString(canonicalInteger(text))
		case isNumber(text):
			b.WriteString(canonicalNumber(text))
		default:
			y.fail("no number")
		}
	default:
		switch y.name() {
		case "True", "true":
			b.WriteString("true")
		case "False", "false":
			b.WriteString("false")
		case "None", "null":
			b.WriteString("null")
		default:
			y.fail("no literal")
		}
	}
}

// text parses a string literal.
func (y *python) text() string {
	mark := y.s[y.i]
	y.i++
	var b strings.Builder
	for y.i < len(y.s) {
		c := y.s[y.i]
		y.i++
		switch {
		case c == mark:
			return b.String()
		case c != '\\' || y.i >= len(y.s):
			b.WriteByte(c)
		default:
			y.escape(&b)
		}
	}
	y.fail("a text has no end")
	return ""
}

var pythonEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", 'a': "\a", '0': "\x00", '\\': `\`, '\'': "'", '"': `"`, '\n': ""}

func (y *python) escape(b *strings.Builder) {
	c := y.s[y.i]
	y.i++
	if size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; size > 0 {
		if y.i+size <= len(y.s) {
			if v, err := strconv.ParseUint(y.s[y.i:y.i+size], 16, 32); err == nil {
				b.WriteRune(rune(v))
				y.i += size
				return
			}
		}
		y.fail("a bad escape in a text")
		return
	}
	if s, ok := pythonEscapes[c]; ok {
		b.WriteString(s)
		return
	}
	b.WriteByte('\\') // Python keeps unknown escapes
	b.WriteByte(c)
}
