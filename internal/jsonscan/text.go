package jsonscan

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// plain returns the text of a string without escapes that is not Given.
func (v Value) plain() (text []byte, ok bool) {
	if v.n.kind != String || v.n.flags&(flagEscaped|flagGiven) != 0 {
		return nil, false
	}
	return v.d.src[v.n.start+1 : v.n.end-1], true
}

// Text returns the decoded string, as a copy, and whether v is a string. A lone surrogate
// escape becomes U+FFFD; LoneSurrogate detects it.
func (v Value) Text() (string, bool) {
	text, plain := v.plain()
	switch {
	case plain:
		return string(text), true
	case v.n.kind != String:
		return "", false
	case v.n.flags&flagGiven != 0:
		return v.within()[0].Text, true
	}
	text = v.d.src[v.n.start+1 : v.n.end-1]
	return view(appendUnescaped(make([]byte, 0, len(text)), text)), true
}

// TextIn is Text for a caller that holds the parsed text as a string; the result shares its
// memory if nothing is escaped.
func (v Value) TextIn(text string) (string, bool) {
	if _, plain := v.plain(); plain {
		return text[v.n.start+1 : v.n.end-1], true
	}
	return v.Text()
}

// String returns the decoded string, "" if v is not a string.
func (v Value) String() string { s, _ := v.Text(); return s }

// Is reports whether v is the string s.
func (v Value) Is(s string) bool {
	if text, plain := v.plain(); plain {
		return string(text) == s
	}
	if v.n.kind != String {
		return false
	}
	// An escape has at most six bytes for each byte that it encodes.
	n := v.Size() - 2
	return n >= len(s) && n <= 6*len(s) && v.String() == s
}

// Key returns the decoded string as bytes, a view of the text if nothing is escaped; nil if
// v is not a string.
func (v Value) Key() []byte {
	text, plain := v.plain()
	if !plain && v.n.kind == String {
		text = []byte(v.String())
	}
	return text
}

// A Doc stores at most maxWords words, none longer than maxWord bytes.
const maxWords, maxWord = 1 << 10, 32

// Word is String for texts that recur, such as keys and roles: equal words of a Doc share
// memory, also across calls of Parse.
func (v Value) Word() string {
	text, plain := v.plain()
	if !plain || len(text) > maxWord {
		return v.String()
	}
	if s, ok := v.d.words[string(text)]; ok {
		return s
	}
	s := string(text)
	if v.d.words == nil {
		v.d.words = map[string]string{}
	}
	if len(v.d.words) < maxWords {
		v.d.words[s] = s
	}
	return s
}

// LoneSurrogate reports whether the string has an escape that is half of a surrogate pair.
func (v Value) LoneSurrogate() bool {
	if v.n.kind != String || v.n.flags&flagUnicode == 0 {
		return false
	}
	for b := v.d.src[v.n.start+1 : v.n.end-1]; ; {
		k := bytes.IndexByte(b, '\\')
		if k < 0 {
			return false
		}
		if b = b[k:]; b[1] != 'u' {
			b = b[2:]
			continue
		}
		r, n := unescapeRune(b)
		if r == utf8.RuneError && !bytes.EqualFold(b[2:6], []byte("fffd")) {
			return true
		}
		b = b[n:]
	}
}

// appendUnescaped decodes b, the checked text of a string.
func appendUnescaped(out, b []byte) []byte {
	for {
		k := bytes.IndexByte(b, '\\')
		if k < 0 {
			return append(out, b...)
		}
		out = append(out, b[:k]...)
		b = b[k:]
		switch c := b[1]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := unescapeRune(b)
			out = utf8.AppendRune(out, r)
			b = b[n:]
			continue
		default:
			out = append(out, c)
		}
		b = b[2:]
	}
}

// unescapeRune decodes the \u escape, or the pair of \u escapes, at the start of b.
func unescapeRune(b []byte) (rune, int) {
	r := hex4(b[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if p := utf16.DecodeRune(r, hex4(b[8:])); p != utf8.RuneError {
			return p, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) rune {
	return rune(hex(b[0])<<12 | hex(b[1])<<8 | hex(b[2])<<4 | hex(b[3]))
}

// view returns b as a string without copying; b must not change while the string is in use.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
