//go:build cgo

package hf

import (
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// offsetMap maps offsets in the repaired text to offsets in the given text; nil if they are equal.
type offsetMap []int32

func (m offsetMap) to(at int) int {
	if m == nil {
		return at
	}
	return int(m[at])
}

// toValid replaces each maximal invalid subpart of UTF-8 by U+FFFD.
func toValid(s string) (string, offsetMap) {
	if utf8.ValidString(s) {
		return s, nil
	}
	const replacement = "\uFFFD"
	var b strings.Builder
	var m offsetMap
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		text := s[at : at+n]
		if r == utf8.RuneError && n == 1 {
			text, n = replacement, uni.InvalidLen([]byte(s[at:min(at+utf8.UTFMax, len(s))]))
		}
		for range len(text) {
			m = append(m, int32(at))
		}
		b.WriteString(text)
		at += n
	}
	return b.String(), append(m, int32(len(s)))
}
