//go:build cgo

package hf

import (
	"strings"
	"unicode/utf8"
)

// offsetMap takes offsets in the repaired text back to the text as given; nil
// when they are the same.
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
			text, n = replacement, invalidLen(s[at:])
		}
		for range len(text) {
			m = append(m, int32(at))
		}
		b.WriteString(text)
		at += n
	}
	return b.String(), append(m, int32(len(s)))
}

// invalidLen is the length of the maximal subpart of an ill-formed sequence at
// the beginning of s (Unicode 15, section 3.9, U+FFFD substitution).
func invalidLen(s string) int {
	low, high, need := byte(0x80), byte(0xBF), 0
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			low = 0xA0
		}
		if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			low = 0x90
		}
		if c == 0xF4 {
			high = 0x8F
		}
	default:
		return 1
	}
	n := 1
	for ; n <= need && n < len(s) && s[n] >= low && s[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n
}
