package jsonscan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// Plain returns the number of leading bytes of s that need no escape in a JSON string.
func Plain(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// AppendEscaped appends s as the text of a JSON string, without quotes. Bytes that are not
// UTF-8 are copied unchanged.
func AppendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for {
		n := Plain(s)
		b = append(b, s[:n]...)
		if n == len(s) {
			return b
		}
		switch c := s[n]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[n+1:]
	}
}

// Marshal returns v as encoding/json writes it, but without escaping <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// AppendBase64 appends bytes as a JSON string in base64.
func AppendBase64(b, s []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), s), '"')
}

// AppendFloat appends a number as Python writes it: NaN and infinities, which JSON lacks,
// as words.
func AppendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.AppendFloat(b, f, 'f', 1, bits)
	}
	return strconv.AppendFloat(b, f, 'g', -1, bits)
}

// AppendText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	return append(AppendEscaped(append(b, '"'), s), '"')
}

// Unquote returns the decoded string of a JSON text, "" if it is not a string.
func Unquote(raw []byte) string {
	var d Doc
	v, err := d.Parse(raw, Options{})
	if err != nil {
		return ""
	}
	return v.String()
}
