// Package decimal reads decimal digits of any script, as Python does.
package decimal

import "unicode"

// Digit returns the value of a decimal digit (category Nd), -1 for any other character. It relies on
// Unicode's layout: the ten digits of a script are in order, and each run begins with a zero.
func Digit(r rune) int {
	if r < 0x80 {
		if r >= '0' && r <= '9' {
			return int(r - '0')
		}
		return -1
	}
	for _, t := range unicode.Nd.R16 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r >= rune(t.Lo) && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	return -1
}
