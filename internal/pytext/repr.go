package pytext

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// IsSpace implements str.isspace for one character: Unicode white space, and U+001C to U+001F.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// IsLineEnd reports whether str.splitlines ends a line at r; \r and \n together are one end.
func IsLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

// Float implements repr of a float.
func Float(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	if abs := math.Abs(f); abs != 0 && abs < 1e-4 || abs >= 1e16 {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Quote implements repr of a str.
func Quote(s string) string {
	q := QuoteOf(s)
	var b strings.Builder
	b.WriteString(q)
	for _, r := range s {
		b.WriteString(cmp.Or(EscapeIn(q, r), string(r)))
	}
	return b.String() + q
}

// QuoteOf returns the quote character around the repr of s.
func QuoteOf(s string) string {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"`
	}
	return "'"
}

// EscapeIn returns the escape of a character between quotes q, "" if it needs none.
func EscapeIn(q string, r rune) string {
	switch {
	case string(r) == q || r == '\\':
		return `\` + string(r)
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case !unicode.IsPrint(r):
		return Escape(r)
	}
	return ""
}

// Escape returns the escape of a character by its number.
func Escape(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
