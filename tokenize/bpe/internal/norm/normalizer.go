package norm

import (
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/bpe/internal/rx"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Normalizer changes a text in place.
type Normalizer func(u *uni.Tables, t *Text) error

// Form is one of the four Unicode normal forms.
type Form struct{ Compat, Compose bool }

// Apply is the [Normalizer] for the form.
func (f Form) Apply(u *uni.Tables, t *Text) error {
	if !f.Compose || t.Al != nil || t.patches != nil {
		return t.transform(f.chars(u, make([]uni.Char, 0, utf8.RuneCount(t.Buf)), t.Buf, t.Most), 0)
	}
	p := patcher{t: t}
	var chars []uni.Char
	for _, s := range f.unsettled(u, t.Buf, t.Most) {
		chars = f.chars(u, chars[:0], t.Buf[s[0]:s[1]], t.Most)
		if err := p.replace(s[0], s[1], chars); err != nil {
			return err
		}
	}
	p.finish()
	return nil
}

func (f Form) chars(u *uni.Tables, dst []uni.Char, b []byte, most int) []uni.Char {
	dst = u.Decompose(dst, b, f.Compat, most)
	if f.Compose {
		dst = u.Recompose(dst)
	}
	return dst
}

// flag returns the flag of characters that may change or take part in a change.
func (f Form) flag() uint16 {
	if f.Compat {
		return uni.NFKCNo
	}
	return uni.NFCNo
}

const (
	// near is the distance in bytes up to which two changed stretches are joined.
	near = 32
	// longStretch is the length in bytes from which a stretch is not joined with the next, so that the memory for
	// normalising it stays in cache.
	longStretch = 4096
)

// unsettled returns the stretches of b that are not in the composed form f. Around a character that may change or
// take part in a change, it normalises and compares the stretch between the nearest characters that never do.
func (f Form) unsettled(u *uni.Tables, b []byte, most int) (spans [][2]int) {
	start := 0 // start of the last character without the flag
	var buf []uni.Char
	for i := 0; i < len(b); {
		if n := plain(b[i:]); n > 0 {
			i += n
			start = i - 1
			continue
		}
		r, size := uni.DecodeRune(b[i:])
		if u.Flags(r)&f.flag() == 0 {
			start = i
			i += size
			continue
		}
		end := i + size
		for end < len(b) {
			r, size := uni.DecodeRune(b[end:])
			if u.Flags(r)&f.flag() == 0 {
				break
			}
			end += size
		}
		if n := len(spans); n > 0 && start-spans[n-1][1] <= near && end-spans[n-1][0] <= longStretch {
			spans[n-1][1] = end
		} else if buf = f.chars(u, buf[:0], b[start:end], most); !same(buf, b[start:end]) {
			spans = append(spans, [2]int{start, end})
		}
		i, start = end, end
	}
	return spans
}

// same reports whether b is the encoding of chars.
func same(chars []uni.Char, b []byte) bool {
	for _, c := range chars {
		r, size := utf8.DecodeRune(b)
		if r != c.R || size == 0 {
			return false
		}
		b = b[size:]
	}
	return len(b) == 0
}

// Lowercase maps each character to its full lower-case form.
func Lowercase(u *uni.Tables, t *Text) error {
	chars := make([]uni.Char, 0, len(t.Buf))
	for i := 0; i < len(t.Buf); {
		r, size := uni.DecodeRune(t.Buf[i:])
		i += size
		to := u.ToLower(r)
		if to == nil {
			chars = append(chars, uni.Char{R: r})
		}
		for k, c := range to {
			chars = append(chars, uni.Char{R: c, Change: int32(min(k, 1))})
		}
	}
	return t.transform(chars, 0)
}

// StripAccents removes combining marks.
func StripAccents(u *uni.Tables, t *Text) error {
	var chars []uni.Char
	skip, removed := 0, int32(0)
	for i := 0; i < len(t.Buf); {
		r, size := uni.DecodeRune(t.Buf[i:])
		i += size
		if u.Flags(r)&uni.Accent != 0 {
			removed++
			continue
		}
		if len(chars) == 0 {
			skip = int(removed)
		} else {
			chars[len(chars)-1].Change = -removed
		}
		removed = 0
		chars = append(chars, uni.Char{R: r})
	}
	if len(chars) > 0 {
		chars[len(chars)-1].Change = -removed
	} else {
		skip = int(removed)
	}
	return t.transform(chars, skip)
}

// Strip removes white space at the chosen ends.
func Strip(left, right bool) Normalizer {
	return func(u *uni.Tables, t *Text) error {
		a, b := 0, len(t.Buf)
		for left && a < b {
			r, size := uni.DecodeRune(t.Buf[a:])
			if u.Flags(r)&uni.Space == 0 {
				break
			}
			a += size
		}
		for right && b > a {
			r, size := utf8.DecodeLastRune(t.Buf[a:b])
			if u.Flags(r)&uni.Space == 0 {
				break
			}
			b -= size
		}
		t.align()
		base := t.Base // the text still begins at its old Base
		*t = t.Slice(a, b)
		t.Base = base
		return nil
	}
}

// Prepend puts a string before a text unless the text is empty.
func Prepend(s string) Normalizer {
	return func(_ *uni.Tables, t *Text) error { return t.Prepend(s) }
}

// ReplaceString replaces all occurrences of a literal.
func ReplaceString(old, content string) Normalizer {
	return func(_ *uni.Tables, t *Text) error { return t.ReplaceString(old, content) }
}

// ReplacePattern replaces the matches of a pattern.
func ReplacePattern(re *rx.Regexp, content string) Normalizer {
	return func(_ *uni.Tables, t *Text) error {
		matches, err := re.All(t.Buf, t.Until)
		if err != nil {
			return err
		}
		return t.Replace(content, func(yield func(int, int) bool) {
			for _, m := range matches {
				if !yield(m[0], m[1]) {
					return
				}
			}
		})
	}
}

// ByteSpelling replaces each byte by the character that spells it.
func ByteSpelling(_ *uni.Tables, t *Text) error { return t.Spell() }
