package value

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// shortEscapes are the second bytes of the escapes of two bytes, 0 for none.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}

const hexDigits = "0123456789abcdef"

const escapeBlock = 32 // bytes of a step of escapeBlocks

// putEscape writes the escape of c and returns its length.
func putEscape(buf []byte, c byte) int {
	if e := shortEscapes[c]; e != 0 {
		buf[1], buf[0] = e, '\\'
		return 2
	}
	return copy(buf, []byte{'\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]})
}

// mustEscape reports whether a byte is escaped wherever it stands.
func mustEscape(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// appendEscape appends the first character of s, escaped where it must be, and
// returns its length.
func (j *JSON) appendEscape(dst []byte, s string) ([]byte, int) {
	c := s[0]
	switch {
	case mustEscape(c) || c == 0x7f && j.EnsureASCII:
		var buf [6]byte
		return append(dst, buf[:putEscape(buf[:], c)]...), 1
	case c < utf8.RuneSelf || !j.EnsureASCII:
		return append(dst, c), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r >= 0x10000 {
		r -= 0x10000
		return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff), n
	}
	return fmt.Appendf(dst, `\u%04x`, r), n
}

// escaped appends text with what must be escaped.
func (t *Text) escaped(text string) {
	const block = 1 << 10 // bytes for which room is made at once
	for text != "" {
		n := min(len(text), block)
		room := 6*n + 8 // of escapes, and what is copied behind the end
		if room > cap(t.B)-len(t.B) {
			t.grow(room)
		}
		t.B = t.B[:len(t.B)+putEscaped(t.B[len(t.B):cap(t.B)], text[:n])]
		text = text[n:]
	}
}

// quoted appends s between quotes.
func (t *Text) quoted(s string) {
	n := len(t.B)
	if len(s)+2 > cap(t.B)-n {
		t.grow(len(s) + 2)
	}
	t.B = t.B[:n+len(s)+2]
	b := t.B[n:]
	b[0], b[len(s)+1] = '"', '"'
	copy(b[1:], s)
}

// putEscaped writes text with its escapes and returns the length; buf has room for six
// times as much and eight bytes.
func putEscaped(buf []byte, text string) int {
	i, d := 0, 0
	for hasBlocks && len(text)-i >= 2*escapeBlock {
		read, written := escapeBlocks(buf[d:], text[i:], &shortEscapes)
		i, d = i+read, d+written
		if len(text)-i >= 2*escapeBlock { // it ended at a byte with a longer escape
			d += putEscape(buf[d:], text[i])
			i++
		}
	}
	for i+8 <= len(text) {
		// Slices of known length: what is next waits for little but the place of the hit.
		w := word(text[i : i+8])
		binary.LittleEndian.PutUint64(buf[d:d+8:d+8], w)
		hit := unsafeBytes(w)
		if hit == 0 {
			i, d = i+8, d+8
			continue
		}
		k := bits.TrailingZeros64(hit) >> 3
		i, d = i+k, d+k
		d += putEscape(buf[d:], text[i])
		i++
	}
	for ; i < len(text); i++ {
		if c := text[i]; mustEscape(c) {
			d += putEscape(buf[d:], c)
		} else {
			buf[d] = c
			d++
		}
	}
	return d
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// unsafeBytes has the high bit of the first byte of w that needs an escape as
// its lowest bit.
func unsafeBytes(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote := (w ^ ones*2) - ones*0x21 // and control: with bit 1 turned the quote is 0x20
	slash := (w ^ ones*'\\') - ones
	return (quote | slash) & ^w & highs
}

// harmless reports whether s is a short text without a byte to escape, as keys and
// names are.
func harmless(s string) bool {
	n := len(s)
	switch {
	case n >= 8 && n < 2*escapeBlock:
		for i := 0; i+8 < n; i += 8 {
			if unsafeBytes(word(s[i:])) != 0 {
				return false
			}
		}
		return unsafeBytes(word(s[n-8:])) == 0
	case n >= 4 && n < 8:
		return unsafeBytes(uint64(four(s))|uint64(four(s[n-4:]))<<32) == 0
	}
	return false
}

// safePrefix is the number of leading bytes that need no escape, found eight
// bytes at a time.
func safePrefix(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if hit := unsafeBytes(word(s[i:])); hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(s); i++ {
		if mustEscape(s[i]) {
			break
		}
	}
	return i
}
