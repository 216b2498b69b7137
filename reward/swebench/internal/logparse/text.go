package logparse

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/pytext"
)

// The reference is written in Python: str.split, str.strip and \s use Unicode white space plus the
// four ASCII separators, \d matches every decimal digit, \w letters, numbers and the underscore (no
// combining marks).

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

func trimLeft(s string) string { return strings.TrimLeftFunc(s, pytext.IsSpace) }

func trimRight(s string) string { return strings.TrimRightFunc(s, pytext.IsSpace) }

func trim(s string) string { return strings.TrimFunc(s, pytext.IsSpace) }

// indent returns the length of the leading white space in characters and in bytes.
func indent(s string) (chars, bytes int) {
	rest := trimLeft(s)
	bytes = len(s) - len(rest)
	return utf8.RuneCountInString(s[:bytes]), bytes
}

// nextField returns the first word of s, delimited by white space, and the rest after it.
func nextField(s string) (word, rest string) {
	s = trimLeft(s)
	end := strings.IndexFunc(s, pytext.IsSpace)
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// lastField returns the last word of s and the text before it.
func lastField(s string) (before, word string) {
	word = trimRight(s)
	before = strings.TrimRightFunc(word, func(r rune) bool { return !pytext.IsSpace(r) })
	return before, word[len(before):]
}

// cutSpace removes one leading white space character.
func cutSpace(s string) (string, bool) {
	r, n := utf8.DecodeRuneInString(s)
	if !pytext.IsSpace(r) {
		return s, false
	}
	return s[n:], true
}

// cutLastSpace removes one trailing white space character.
func cutLastSpace(s string) (string, bool) {
	r, n := utf8.DecodeLastRuneInString(s)
	if !pytext.IsSpace(r) {
		return s, false
	}
	return s[:len(s)-n], true
}

// digitsPrefix returns the length in bytes of the leading decimal digits.
func digitsPrefix(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsDigit)) }

func endOfLine(s string, from int) int {
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
		return from + i
	}
	return len(s)
}

// squeeze replaces every run of white space by one blank and trims the ends.
func squeeze(s string) string { return strings.Join(strings.FieldsFunc(s, pytext.IsSpace), " ") }

const (
	spaceSet = `\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	digitSet = `\p{Nd}`
	wordSet  = `\p{L}\p{N}_`
)

// compile returns a function for a regular expression that is compiled at the first call. In the
// pattern, <s>, <S>, <d> and <w> stand for the reference's character classes, <d.> for digits and
// points, and <blank> for white space within a line.
func compile(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(strings.NewReplacer(
			"<s>", "["+spaceSet+"]", "<S>", "[^"+spaceSet+"]", "<d>", digitSet, "<w>", "["+wordSet+"]",
			"<d.>", "["+digitSet+`.]`,
			"<blank>", `[\t\v\f\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]`,
		).Replace(pattern))
	})
}

// words maps the words of a log about a test to statuses. The key is "" for a pattern without a word.
type words map[string]Status

// perLine returns the parser of a log with one line per test. pattern must match the whole line after
// prepare; its groups "test" and "word" are the name of the test and the word about it. rename, if not
// nil, is applied to the name.
func perLine(prepare func(line string) string, pattern string, meaning words, rename func(test string) string) Parser {
	re := compile(`\A(?:` + pattern + `)\z`)
	return func(log string, _ Context) (Statuses, error) {
		var m Statuses
		test, word := re().SubexpIndex("test"), re().SubexpIndex("word")
		for line := range strings.SplitSeq(log, "\n") {
			g := re().FindStringSubmatch(prepare(line))
			if g == nil {
				continue
			}
			name, status := g[test], meaning[""]
			if word >= 0 {
				status = meaning[g[word]]
			}
			if rename != nil {
				name = rename(name)
			}
			m.Set(name, status)
		}
		return m, nil
	}
}

var escapeSequence = compile(`\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])`)

// stripANSI removes terminal escape sequences: ESC followed by one byte of @..Z, \, ], ^ or _, or a
// CSI sequence.
func stripANSI(s string) string { return escapeSequence().ReplaceAllLiteralString(s, "") }
