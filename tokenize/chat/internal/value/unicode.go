package value

import "unicode"

// IsSpace is str.isspace for one character: Unicode white space, and U+001C to
// U+001F.
func IsSpace(r rune) bool {
	return unicode.IsSpace(r) || (r >= 0x1c && r <= 0x1f)
}
