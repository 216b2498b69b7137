// Package tjson reads the big tables of a tokenizer.json without reflection and
// without a node for each of their million values, which internal/jsonscan has.
package tjson

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Scanner walks over one JSON text. The first failure sticks: later calls do
// nothing, and Err returns it.
type Scanner struct {
	b     []byte
	i     int
	err   error
	depth int
}

// New returns a scanner over b.
func New(b []byte) *Scanner { return &Scanner{b: b} }

// Err returns the first failure.
func (s *Scanner) Err() error { return s.err }

// Offset returns the position in bytes.
func (s *Scanner) Offset() int { return s.i }

// Fail records a failure at the current position.
func (s *Scanner) Fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("byte %d: %s", s.i, fmt.Sprintf(format, args...))
	}
	s.i = len(s.b)
}

func (s *Scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// Peek returns the first byte of the next value, 0 at the end.
func (s *Scanner) Peek() byte {
	s.space()
	if s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

// Take consumes c where it comes next.
func (s *Scanner) Take(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.i++
	return true
}

// Expect consumes c or fails.
func (s *Scanner) Expect(c byte) bool {
	if s.err != nil {
		return false
	}
	if !s.Take(c) {
		s.Fail("expected %q, found %s", c, s.here())
		return false
	}
	return true
}

func (s *Scanner) here() string {
	if s.i >= len(s.b) {
		return "the end"
	}
	return fmt.Sprintf("%.12q", s.b[s.i:])
}

// Object calls member for each key, which must consume the value. key is valid
// until the next call.
func (s *Scanner) Object(member func(key []byte)) {
	s.list('{', '}', func() {
		key := s.String()
		if s.Expect(':') {
			member(key)
		}
	})
}

// Array calls item for each element, which must consume it.
func (s *Scanner) Array(item func()) { s.list('[', ']', item) }

const maxDepth = 64

func (s *Scanner) list(open, end byte, item func()) {
	if !s.Expect(open) {
		return
	}
	if s.depth++; s.depth > maxDepth {
		s.Fail("values nest deeper than %d", maxDepth)
		return
	}
	defer func() { s.depth-- }()
	if s.Take(end) {
		return
	}
	for s.err == nil {
		item()
		if s.err != nil || s.Take(end) {
			return
		}
		s.Expect(',')
	}
}

// String reads a string. The result points into the text where nothing is
// escaped.
func (s *Scanner) String() []byte {
	if !s.Expect('"') {
		return nil
	}
	start := s.i
	for i := s.i; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return s.b[start:i:i]
		case c == '\\':
			return s.escaped(start, i)
		case c < 0x20:
			s.i = i
			s.Fail("a control character in a string")
			return nil
		}
	}
	s.i = start
	s.Fail("a string is not closed")
	return nil
}

func (s *Scanner) escaped(start, i int) []byte {
	out := append(make([]byte, 0, i-start+16), s.b[start:i]...)
	for i < len(s.b) {
		c := s.b[i]
		switch {
		case c == '"':
			s.i = i + 1
			return out
		case c < 0x20:
			s.i = i
			s.Fail("a control character in a string")
			return nil
		case c != '\\':
			out = append(out, c)
			i++
			continue
		}
		if i+1 >= len(s.b) {
			break
		}
		switch e := s.b[i+1]; e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, n := s.unicode(i)
			if n == 0 {
				s.i = i
				s.Fail("a broken \\u escape")
				return nil
			}
			out = utf8.AppendRune(out, r)
			i += n
			continue
		default:
			s.i = i
			s.Fail("an unknown escape \\%c", e)
			return nil
		}
		i += 2
	}
	s.Fail("a string is not closed")
	return nil
}

// unicode reads \uXXXX, or two of them for a surrogate pair, at i.
func (s *Scanner) unicode(i int) (rune, int) {
	r := hex4(s.b, i+2)
	if r < 0 {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if i+8 > len(s.b) || s.b[i+6] != '\\' || s.b[i+7] != 'u' {
		return 0, 0
	}
	low := hex4(s.b, i+8)
	if r = utf16.DecodeRune(r, low); low < 0 || r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var v rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return -1
		}
	}
	return v
}

// Int reads a whole number of at most 9 digits.
func (s *Scanner) Int() int {
	if s.err != nil {
		return 0
	}
	s.space()
	i, v := s.i, 0
	for i < len(s.b) && s.b[i] >= '0' && s.b[i] <= '9' && i-s.i < 10 {
		v = v*10 + int(s.b[i]-'0')
		i++
	}
	if i == s.i || i-s.i > 9 || i < len(s.b) && (s.b[i] == '.' || s.b[i] == 'e' || s.b[i] == 'E') {
		s.Fail("expected a whole number of at most 9 digits, found %s", s.here())
		return 0
	}
	s.i = i
	return v
}

// Raw consumes any value and returns its text.
func (s *Scanner) Raw() []byte {
	s.space()
	start := s.i
	switch c := s.Peek(); {
	case s.err != nil:
		return nil
	case c == '"':
		s.String()
	case c == '{' || c == '[':
		s.skipNested()
	default:
		n := bytes.IndexAny(s.b[s.i:], ",]} \t\r\n")
		if n < 0 {
			n = len(s.b) - s.i
		}
		if n == 0 {
			s.Fail("expected a value, found %s", s.here())
			return nil
		}
		s.i += n
	}
	if s.err != nil {
		return nil
	}
	return s.b[start:s.i]
}

// skipNested passes over an object or array by counting brackets; what is
// inside is checked by whoever decodes it.
func (s *Scanner) skipNested() {
	depth := 0
	for i := s.i; i < len(s.b); i++ {
		switch s.b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.i = i + 1
				return
			}
		case '"':
			s.i = i
			s.String()
			if s.err != nil {
				return
			}
			i = s.i - 1
		}
	}
	s.Fail("a value is not closed")
}

// End fails unless only white space is left.
func (s *Scanner) End() {
	if s.err == nil && s.Peek() != 0 {
		s.Fail("expected the end, found %s", s.here())
	}
}
