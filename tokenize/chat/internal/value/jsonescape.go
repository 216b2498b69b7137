package value

import (
	"fmt"
	"unicode/utf8"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// escapes holds the JSON escape of each byte that json.dumps always escapes, "" for all others.
var escapes = func() (t [256]string) {
	for c := range byte(' ') {
		t[c] = fmt.Sprintf(`\u%04x`, c)
	}
	t['"'], t['\\'], t['\n'], t['\r'], t['\t'], t['\b'], t['\f'] = `\"`, `\\`, `\n`, `\r`, `\t`, `\b`, `\f`
	return t
}()

// appendEscape appends the first character of s, escaped if necessary, and returns its length in s in bytes.
func (j *JSON) appendEscape(dst []byte, s string) ([]byte, int) {
	c := s[0]
	switch {
	case escapes[c] != "":
		return append(dst, escapes[c]...), 1
	case c == 0x7f && j.EnsureASCII:
		return append(dst, `\u007f`...), 1
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

// escaped appends text as JSON string content. Before each append there is room for all of the remaining text.
func (t *Text) escaped(text string) {
	escapes, end := &escapes, len(t.B)+len(text)
	if t.Lim != nil && !t.Lim.Spend(len(text)) || end > cap(t.B) && !t.grow(len(text)) {
		return
	}
	b := t.B
	for {
		n := jsonscan.Plain(text)
		b = append(b, text[:n]...)
		if n == len(text) {
			break
		}
		escape := escapes[text[n]]
		text = text[n+1:]
		if left := len(escape) + len(text); left > cap(b)-len(b) {
			if t.B = b; !t.grow(left) {
				return
			}
			b = t.B
		}
		b = append(b, escape...)
	}
	if t.B = b; t.Lim != nil {
		t.Lim.Spend(len(b) - end) // bytes added by escaping
	}
}
