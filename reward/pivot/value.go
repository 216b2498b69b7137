package pivot

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	text
	list
	object
)

// value is a JSON value with Python's types: notation distinguishes integers from floats, and an
// object keeps the order of first insertion.
type value struct {
	kind  kind
	bool  bool
	int   *big.Int
	float float64
	text  string
	list  []value
	keys  []string
	of    map[string]value
}

func isSpace(r rune) bool { return r >= 0x1c && r <= 0x1f || unicode.IsSpace(r) }

func fields(s string) []string { return strings.FieldsFunc(s, isSpace) }

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// lower applies Unicode's full lower-casing, including the final sigma.
func lower(s string) string { return cases.Lower(language.Und).String(s) }

// str reproduces Python's str(): the text of a string, the repr of any other value.
func (v value) str() string {
	if v.kind == text {
		return v.text
	}
	return string(v.repr(nil))
}

func (v value) repr(b []byte) []byte {
	switch v.kind {
	case null:
		return append(b, "None"...)
	case boolean:
		if v.bool {
			return append(b, "True"...)
		}
		return append(b, "False"...)
	case integer:
		return v.int.Append(b, 10)
	case float:
		return appendFloat(b, v.float)
	case text:
		return appendQuoted(b, v.text)
	case list:
		b = append(b, '[')
		for i, e := range v.list {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = e.repr(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, k := range v.keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendQuoted(b, k), ": "...)
		b = v.of[k].repr(b)
	}
	return append(b, '}')
}

// appendFloat appends the shortest form that reads back as f, with an exponent below 1e-4 and from
// 1e16 on.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	from := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if !strings.Contains(string(b[from:]), ".") {
		b = append(b, ".0"...)
	}
	return b
}

func appendQuoted(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r < 0x100:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = fmt.Appendf(b, `\U%08x`, r)
		}
	}
	return append(b, quote)
}
