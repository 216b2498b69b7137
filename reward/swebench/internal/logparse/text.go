package logparse

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reference is Python: str.split, str.strip and \s use Unicode white space
// plus the four ASCII separators, \d every decimal digit, \w letters, numbers
// and the underscore (no combining marks).

func isSpace(r rune) bool { return r >= 0x1c && r <= 0x1f || unicode.IsSpace(r) }

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

func isDigit(r rune) bool { return unicode.Is(unicode.Nd, r) }

// asciiSpace marks the single-byte white space; multi-byte runes take the slow
// path.
var asciiSpace = [256]bool{'\t': true, '\n': true, '\v': true, '\f': true, '\r': true, ' ': true, 0x1c: true, 0x1d: true, 0x1e: true, 0x1f: true}

func trimLeft(s string) string {
	for len(s) > 0 {
		if c := s[0]; c < utf8.RuneSelf {
			if !asciiSpace[c] {
				return s
			}
			s = s[1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		if !isSpace(r) {
			return s
		}
		s = s[n:]
	}
	return s
}

func trimRight(s string) string {
	for len(s) > 0 {
		if c := s[len(s)-1]; c < utf8.RuneSelf {
			if !asciiSpace[c] {
				return s
			}
			s = s[:len(s)-1]
			continue
		}
		r, n := utf8.DecodeLastRuneInString(s)
		if !isSpace(r) {
			return s
		}
		s = s[:len(s)-n]
	}
	return s
}

func trim(s string) string { return trimRight(trimLeft(s)) }

// indent counts the leading white space in characters and in bytes.
func indent(s string) (chars, bytes int) {
	rest := trimLeft(s)
	bytes = len(s) - len(rest)
	return utf8.RuneCountInString(s[:bytes]), bytes
}

// nextField returns the first white-space separated word of s and what follows.
func nextField(s string) (word, rest string) {
	s = trimLeft(s)
	end := endOfWord(s)
	return s[:end], s[end:]
}

func endOfWord(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if asciiSpace[c] {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if isSpace(r) {
			return i
		}
		i += n
	}
	return len(s)
}

// lastField returns the last word of s and what precedes it.
func lastField(s string) (before, word string) {
	s = trimRight(s)
	i := strings.LastIndexFunc(s, isSpace)
	if i < 0 {
		return "", s
	}
	_, n := utf8.DecodeRuneInString(s[i:])
	return s[:i+n], s[i+n:]
}

func fields(s string) []string { return strings.FieldsFunc(s, isSpace) }

// cutSpace removes one white-space character from the front.
func cutSpace(s string) (string, bool) {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || !isSpace(r) {
		return s, false
	}
	return s[n:], true
}

// cutLastSpace removes one white-space character from the end.
func cutLastSpace(s string) (string, bool) {
	r, n := utf8.DecodeLastRuneInString(s)
	if n == 0 || !isSpace(r) {
		return s, false
	}
	return s[:len(s)-n], true
}

// afterSpace cuts one white space off the front of a line; false if there is none,
// or nothing after it.
func afterSpace(s string) (string, bool) {
	s, ok := cutSpace(s)
	return s, ok && s != ""
}

// result is a word with which the line of a test begins, and what it says.
type result struct {
	word   string
	status Status
}

// byWord reads logs of one line per test: trimmed lines that begin with a word of
// results and hold the test's name after it, where name finds it.
func byWord(log string, results []result, name func(rest string) (string, bool)) Statuses {
	var m Statuses
	for line := range lines(log) {
		line = trim(line)
		for _, r := range results {
			rest, ok := strings.CutPrefix(line, r.word)
			if !ok {
				continue
			}
			if test, ok := name(rest); ok {
				m.Set(test, r.status)
			}
			break
		}
	}
	return m
}

// digitsPrefix is the length in bytes of the leading decimal digits.
func digitsPrefix(s string) int {
	i := 0
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isDigit(r) {
			break
		}
		i += n
	}
	return i
}

// lines yields the pieces between line feeds, the last one included even when
// it is empty.
func lines(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			i := strings.IndexByte(s, '\n')
			if i < 0 {
				yield(s)
				return
			}
			if !yield(s[:i]) {
				return
			}
			s = s[i+1:]
		}
	}
}

func endOfLine(s string, from int) int {
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
		return from + i
	}
	return len(s)
}

func startOfLine(s string, at int) int { return strings.LastIndexByte(s[:at], '\n') + 1 }

// squeeze replaces every run of white space by one blank and trims the ends.
func squeeze(s string) string { return strings.Join(fields(s), " ") }

const (
	spaceSet = `\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	digitSet = `\p{Nd}`
	wordSet  = `\p{L}\p{N}_`
)

// compile builds a regular expression in which <s>, <S>, <d> and <w> stand for
// the reference's character classes, and <s+d> style sets are written as
// [<-s>...] by the caller with the set constants.
func compile(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer(
		"<s>", "["+spaceSet+"]", "<S>", "[^"+spaceSet+"]", "<d>", digitSet, "<w>", "["+wordSet+"]",
		"<d.>", "["+digitSet+`.]`,
		"<blank>", `[\t\v\f\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`,
	).Replace(pattern))
}

// eachAt yields the submatches of re, which must be anchored with \A, at every
// place where literal begins, leftmost first and without overlap. It is a
// search whose candidates are found by a fast literal scan.
func eachAt(s, literal string, re *regexp.Regexp) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for pos := 0; ; {
			i := strings.Index(s[pos:], literal)
			if i < 0 {
				return
			}
			pos += i
			m := re.FindStringSubmatchIndex(s[pos:])
			if m == nil {
				pos++
				continue
			}
			groups := make([]string, len(m)/2)
			for g := range groups {
				if m[2*g] >= 0 {
					groups[g] = s[pos+m[2*g] : pos+m[2*g+1]]
				}
			}
			if !yield(groups) {
				return
			}
			pos += m[1]
		}
	}
}

// stripANSI removes terminal escape sequences: ESC followed by one byte of
// @..Z, \, ] ^ _, or a CSI sequence.
func stripANSI(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		n := ansiLen(s)
		if n == 0 {
			b.WriteByte(s[0])
			n = 1
		}
		s = s[n:]
	}
}

// ansiLen is the length of the escape sequence at the front of s, 0 if none.
func ansiLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	c := s[1]
	if c >= '@' && c <= 'Z' || c >= '\\' && c <= '_' {
		return 2
	}
	if c != '[' {
		return 0
	}
	i := 2
	for i < len(s) && s[i] >= '0' && s[i] <= '?' {
		i++
	}
	for i < len(s) && s[i] >= ' ' && s[i] <= '/' {
		i++
	}
	if i < len(s) && s[i] >= '@' && s[i] <= '~' {
		return i + 1
	}
	return 0
}
