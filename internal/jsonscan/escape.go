package jsonscan

import "bytes"

// escapes are the bytes of a string that JSON writes otherwise.
var escapes = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// AppendEscaped appends the text of a JSON string that stands for s, without its
// quotes. Bytes that are no UTF-8 stay.
func AppendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !escapes[c] {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
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
	}
	return append(b, s[from:]...)
}

// Unquote is the string that a JSON text is, "" where it is something else.
func Unquote(raw []byte) string {
	if n := len(raw) - 1; n > 0 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:n])
	}
	var d Doc
	v, err := d.Parse(raw, Options{})
	if err != nil {
		return ""
	}
	return v.String()
}
