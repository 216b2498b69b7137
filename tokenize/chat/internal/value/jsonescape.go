package value

import (
	"fmt"
	"unicode/utf16"
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

// escape returns the first character of s, escaped if necessary, and its length in s in bytes.
func (j *JSON) escape(s string) (n int, text string) {
	c := s[0]
	switch {
	case escapes[c] != "":
		return 1, escapes[c]
	case c == 0x7f && j.EnsureASCII:
		return 1, `\u007f`
	case c < utf8.RuneSelf || !j.EnsureASCII:
		return 1, s[:1]
	}
	r, n := utf8.DecodeRuneInString(s)
	if r >= 0x10000 {
		a, b := utf16.EncodeRune(r)
		return n, fmt.Sprintf(`\u%04x\u%04x`, a, b)
	}
	return n, fmt.Sprintf(`\u%04x`, r)
}

// escaped appends s, which has a single origin, as JSON string content in one run. Before each append there is room for
// all of the remaining text.
func (t *Text) escaped(s *Str) {
	text, start := s.S, len(t.B)
	escapes, end := &escapes, start+len(text)
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
	if n := len(b) - start; s.F != nil && n > 0 && t.room() {
		t.begin(&Run{F: s.F, At: int32(start), N: int32(n), Off: s.Off, End: s.Off + int32(len(s.S)), JSON: n != len(s.S)})
	}
}
