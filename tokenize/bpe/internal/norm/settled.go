package norm

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

const highs = 0x8080808080808080

// plain returns the length of the ASCII prefix of s, rounded down to a multiple of 8.
func plain(s []byte) int {
	rest := s
	for len(rest) >= 32 {
		a, b := binary.LittleEndian.Uint64(rest)|binary.LittleEndian.Uint64(rest[8:]), binary.LittleEndian.Uint64(rest[16:])|binary.LittleEndian.Uint64(rest[24:])
		if (a|b)&highs != 0 {
			break
		}
		rest = rest[32:]
	}
	for len(rest) >= 8 && binary.LittleEndian.Uint64(rest)&highs == 0 {
		rest = rest[8:]
	}
	return len(s) - len(rest)
}

// Settled reports in one pass whether s is valid UTF-8, and whether f certainly leaves s unchanged: no character may
// change or take part in a change.
func (f Form) Settled(u *uni.Tables, s []byte) (valid, settled bool) {
	if !f.Compose {
		return utf8.Valid(s), false
	}
	fixed, flag := u.Fixed(f.Compat), f.flag()
	for len(s) > 0 {
		c := s[0]
		if c < utf8.RuneSelf {
			s = s[max(plain(s), 1):]
			continue
		}
		// most characters of three bytes, without those whose second byte is restricted
		if c > 0xE0 && c < 0xF0 && c != 0xED && len(s) >= 3 && s[1]&0xC0 == 0x80 && s[2]&0xC0 == 0x80 && fixed[uint(c)&0x0F<<6|uint(s[1])&0x3F] {
			s = s[3:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		if r == utf8.RuneError && size == 1 {
			return false, false
		}
		if u.Flags(r)&flag != 0 {
			return utf8.Valid(s), false
		}
		s = s[size:]
	}
	return true, true
}
