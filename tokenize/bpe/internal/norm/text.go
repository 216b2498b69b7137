// Package norm implements text that records the origin of each byte, and the normalizers, with the reference's rules
// for both.
package norm

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Text is valid UTF-8 with its origin. The origin of a byte is the byte range of its character (or characters) in the
// text given to Encode.
type Text struct {
	Buf []byte
	// Al holds 2 values per byte of Buf, begin and end. If it is nil, Buf is the original text from Base on, except
	// for patches, and the origin of each byte is its own character.
	Al []int32
	// Base is where the text begins in the original, the origin of bytes inserted before all its characters.
	Base int
	// After is what comes before the text given to Encode.
	After engine.After
	// Most is the maximum number of bytes of Buf, 0 for no limit.
	Most int
	// Until is when to give up matching patterns in the text, nil for never.
	Until *time.Time

	patches []patch
	at      int // where Buf begins in the text that patches refer to
}

// ErrTooLong is the error for a text that grows beyond its Most bytes.
var ErrTooLong = errors.New("the text grows beyond the bound")

// fits returns an error if t must not have n bytes.
func (t *Text) fits(n int) error {
	if t.Most > 0 && n > t.Most {
		return fmt.Errorf("%w of %d bytes", ErrTooLong, t.Most)
	}
	return nil
}

// atStart reports whether t begins where the text given to Encode begins.
func (t *Text) atStart() bool {
	if len(t.Buf) == 0 {
		return t.Base == 0
	}
	first, _ := t.Range(0, 1)
	return first == 0
}

// First reports whether t is the beginning of a text that follows nothing.
func (t *Text) First() bool { return t.After == engine.AfterNothing && t.atStart() }

// Range returns the origin of the bytes [a, b) of t, a < b.
func (t *Text) Range(a, b int) (int, int) {
	if t.Al != nil {
		return int(t.Al[2*a]), int(t.Al[2*b-1])
	}
	for a > 0 && t.Buf[a]&0xC0 == 0x80 {
		a--
	}
	for b < len(t.Buf) && t.Buf[b]&0xC0 == 0x80 {
		b++
	}
	if t.patches != nil {
		first, _ := t.patched(a)
		_, last := t.patched(b - 1)
		return first, last
	}
	return t.Base + a, t.Base + b
}

// Unchanged returns where the bytes [a, b) are in the original, and whether they are the same there.
func (t *Text) Unchanged(a, b int) (int, bool) {
	switch {
	case t.Al != nil:
		return 0, false
	case t.patches != nil:
		return t.unchangedPatched(a, b)
	}
	return t.Base + a, true
}

// Slice returns the part [a, b), which shares memory with t.
func (t *Text) Slice(a, b int) Text {
	s := Text{Buf: t.Buf[a:b:b], Base: t.Base + a, After: t.After, Most: t.Most, Until: t.Until, patches: t.patches, at: t.at + a}
	switch {
	case t.Al != nil:
		s.Al = t.Al[2*a : 2*b : 2*b]
		s.Base = t.Base
		if a < b {
			s.Base = int(t.Al[2*a])
		}
	case t.patches != nil:
		s.Base = t.Base
		if a < b {
			s.Base, _ = t.Range(a, a+1)
		}
	}
	return s
}

// align fills Al with the origins.
func (t *Text) align() {
	if t.Al != nil {
		return
	}
	t.Al = make([]int32, 2*len(t.Buf))
	if t.patches != nil {
		t.alignPatched()
		return
	}
	for i := 0; i < len(t.Buf); {
		_, size := uni.DecodeRune(t.Buf[i:])
		for k := i; k < i+size; k++ {
			t.Al[2*k], t.Al[2*k+1] = int32(t.Base+i), int32(t.Base+i+size)
		}
		i += size
	}
}

// Lossy returns s with every maximal invalid subpart replaced by U+FFFD.
func Lossy(s []byte) Text {
	t := Text{Buf: make([]byte, 0, len(s)+8), Al: make([]int32, 0, 2*len(s)+16)}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && size == 1 {
			size = uni.InvalidLen(s[i:])
		}
		n := len(t.Buf)
		t.Buf = utf8.AppendRune(t.Buf, r)
		for range t.Buf[n:] {
			t.Al = append(t.Al, int32(i), int32(i+size))
		}
		i += size
	}
	return t
}

// transform replaces the whole text by chars, whose Change relates each to the old characters. The first skip old
// characters are dropped before that.
func (t *Text) transform(chars []uni.Char, skip int) error {
	if err := t.fits(len(chars)); err != nil {
		return err
	}
	size, at := 0, 0
	for _, c := range chars {
		size += utf8.RuneLen(c.R)
	}
	next := func() int {
		if at >= len(t.Buf) {
			return 0
		}
		_, size := uni.DecodeRune(t.Buf[at:])
		return size
	}
	for range skip {
		at += next()
	}
	buf, al := make([]byte, 0, size), make([]int32, 0, 2*size)
	for _, c := range chars {
		b, e := t.Base, t.Base
		switch {
		case c.Change > 0 && at > 0:
			b, e = t.Range(at-1, at)
		case c.Change <= 0 && at < len(t.Buf):
			b, e = t.Range(at, at+1)
		}
		if c.Change <= 0 {
			at += next()
			for range -c.Change {
				at += next()
			}
		}
		n := len(buf)
		buf = utf8.AppendRune(buf, c.R)
		for range buf[n:] {
			al = append(al, int32(b), int32(e))
		}
	}
	t.Buf, t.Al, t.patches = buf, al, nil
	return t.fits(len(buf))
}

// Prepend puts s before the text, with the origin of the first character. It does nothing if t is empty or continues
// other text.
func (t *Text) Prepend(s string) error {
	if len(t.Buf) == 0 || s == "" || t.After == engine.AfterText && t.atStart() {
		return nil
	}
	if err := t.fits(len(t.Buf) + len(s)); err != nil {
		return err
	}
	t.align()
	n := len(s)
	buf := make([]byte, 0, len(t.Buf)+n)
	buf = append(append(buf, s...), t.Buf...)
	al := make([]int32, 0, len(t.Al)+2*n)
	for range n {
		al = append(al, t.Al[0], t.Al[1])
	}
	t.Buf, t.Al = buf, append(al, t.Al...)
	return nil
}

// Replace replaces each match by content. Matches are in order. The content has the origin of the last character
// replaced.
func (t *Text) Replace(content string, matches iter.Seq2[int, int]) error {
	var buf []byte
	var al []int32
	last, any := 0, false
	for a, b := range matches {
		if !any {
			any = true
			t.align()
			buf = make([]byte, 0, len(t.Buf)+len(content))
			al = make([]int32, 0, len(t.Al)+2*len(content))
		}
		if err := t.fits(len(buf) + len(t.Buf) - b + a - last + len(content)); err != nil {
			return err
		}
		buf = append(append(buf, t.Buf[last:a]...), content...)
		al = append(al, t.Al[2*last:2*a]...)
		ob, oe := int32(t.Base), int32(t.Base)
		if b > 0 {
			ob, oe = t.Al[2*b-2], t.Al[2*b-1]
		}
		for range len(content) {
			al = append(al, ob, oe)
		}
		last = b
	}
	if any {
		t.Buf, t.Al = append(buf, t.Buf[last:]...), append(al, t.Al[2*last:]...)
	}
	return nil
}

// ReplaceString is Replace for a literal.
func (t *Text) ReplaceString(old, content string) error {
	return t.Replace(content, Occurrences(t.Buf, []byte(old)))
}

// Occurrences yields the begin and end of each occurrence of old in text, from left to right without overlap.
func Occurrences(text, old []byte) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for at := 0; ; {
			k := bytes.Index(text[at:], old)
			if k < 0 || !yield(at+k, at+k+len(old)) {
				return
			}
			at += k + len(old)
		}
	}
}

// byteChars maps a byte to the character that spells it in byte-level vocabularies.
var byteChars = func() (m [256]rune) {
	n := rune(0)
	for b := range m {
		switch {
		case b >= '!' && b <= '~', b >= 0xA1 && b <= 0xAC, b >= 0xAE:
			m[b] = rune(b)
		default:
			m[b] = 256 + n
			n++
		}
	}
	return m
}()

// ByteChar returns the character that spells byte b.
func ByteChar(b byte) rune { return byteChars[b] }

// CharByte is the inverse of ByteChar.
func CharByte(r rune) (byte, bool) {
	switch {
	case r >= '!' && r <= '~', r >= 0xA1 && r <= 0xAC, r >= 0xAE && r <= 0xFF:
		return byte(r), true
	case r >= 256 && r <= 256+32:
		return byte(r - 256), true
	case r >= 256+33 && r < 256+33+34:
		return byte(r-256-33) + 0x7F, true
	case r == 256+67:
		return 0xAD, true
	}
	return 0, false
}

// Spell replaces every byte by its character.
func (t *Text) Spell() error {
	t.align()
	buf := make([]byte, 0, 2*len(t.Buf))
	al := make([]int32, 0, 2*len(t.Al))
	for i, b := range t.Buf {
		n := len(buf)
		buf = utf8.AppendRune(buf, byteChars[b])
		for range buf[n:] {
			al = append(al, t.Al[2*i], t.Al[2*i+1])
		}
	}
	t.Buf, t.Al = buf, al
	return t.fits(len(buf))
}
