package norm

import (
	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Normalizer changes a text in place.
type Normalizer interface {
	Apply(u *uni.Tables, t *Text) error
}

// Sequence applies its members in order.
type Sequence []Normalizer

// Apply implements [Normalizer].
func (s Sequence) Apply(u *uni.Tables, t *Text) error {
	for _, n := range s {
		if err := n.Apply(u, t); err != nil {
			return err
		}
	}
	return nil
}

// Form is one of the four Unicode normal forms.
type Form struct{ Compat, Compose bool }

// Apply implements [Normalizer].
func (f Form) Apply(u *uni.Tables, t *Text) error {
	if f.Compose && Settled(u, t.Buf, f.Compat) {
		return nil
	}
	chars := u.Decompose(make([]uni.Char, 0, len(t.Buf)), t.Buf, f.Compat)
	if f.Compose {
		chars = u.Recompose(chars)
	}
	t.transform(chars, 0)
	return nil
}

// Settled reports whether no character of b can change under NFC (NFKC). It
// errs only towards false.
func Settled(u *uni.Tables, b []byte, compat bool) bool {
	flag, first := uni.NFCNo, byte(0xCC) // no character below U+0300 changes under NFC
	if compat {
		flag, first = uni.NFKCNo, 0xC2
	}
	for i := 0; i < len(b); {
		if len(b)-i >= 8 {
			w := uint64(b[i]) | uint64(b[i+1])<<8 | uint64(b[i+2])<<16 | uint64(b[i+3])<<24 |
				uint64(b[i+4])<<32 | uint64(b[i+5])<<40 | uint64(b[i+6])<<48 | uint64(b[i+7])<<56
			if w&0x8080808080808080 == 0 {
				i += 8
				continue
			}
		}
		if b[i] < first {
			i++
			continue
		}
		r, size := uni.DecodeRune(b[i:])
		if u.Flags(r)&flag != 0 {
			return false
		}
		i += size
	}
	return true
}

// Lowercase maps each character to its full lower-case form.
type Lowercase struct{}

// Apply implements [Normalizer].
func (Lowercase) Apply(u *uni.Tables, t *Text) error {
	chars := make([]uni.Char, 0, len(t.Buf))
	for i := 0; i < len(t.Buf); {
		r, size := uni.DecodeRune(t.Buf[i:])
		i += size
		to := u.ToLower(r)
		if to == nil {
			chars = append(chars, uni.Char{R: r})
		}
		for k, c := range to {
			chars = append(chars, uni.Char{R: c, Change: min(k, 1)})
		}
	}
	t.transform(chars, 0)
	return nil
}

// StripAccents removes combining marks.
type StripAccents struct{}

// Apply implements [Normalizer].
func (StripAccents) Apply(u *uni.Tables, t *Text) error {
	var chars []uni.Char
	skip, removed := 0, 0
	for i := 0; i < len(t.Buf); {
		r, size := uni.DecodeRune(t.Buf[i:])
		i += size
		if u.Flags(r)&uni.Accent != 0 {
			removed++
			continue
		}
		if len(chars) == 0 {
			skip = removed
		} else {
			chars[len(chars)-1].Change = -removed
		}
		removed = 0
		chars = append(chars, uni.Char{R: r})
	}
	if len(chars) > 0 {
		chars[len(chars)-1].Change = -removed
	} else {
		skip = removed
	}
	t.transform(chars, skip)
	return nil
}

// Strip removes white space at the ends.
type Strip struct{ Left, Right bool }

// Apply implements [Normalizer].
func (s Strip) Apply(u *uni.Tables, t *Text) error {
	a, b := 0, len(t.Buf)
	for s.Left && a < b {
		r, size := uni.DecodeRune(t.Buf[a:])
		if u.Flags(r)&uni.Space == 0 {
			break
		}
		a += size
	}
	for s.Right && b > a {
		k := b - 1
		for k > a && t.Buf[k]&0xC0 == 0x80 {
			k--
		}
		r, _ := uni.DecodeRune(t.Buf[k:])
		if u.Flags(r)&uni.Space == 0 {
			break
		}
		b = k
	}
	*t = t.Slice(a, b)
	return nil
}

// Prepend puts a string in front of a text that is not empty.
type Prepend string

// Apply implements [Normalizer].
func (p Prepend) Apply(_ *uni.Tables, t *Text) error {
	t.Prepend(string(p))
	return nil
}

// ReplaceString replaces a literal.
type ReplaceString struct{ Old, New string }

// Apply implements [Normalizer].
func (r ReplaceString) Apply(_ *uni.Tables, t *Text) error { return t.ReplaceString(r.Old, r.New) }

// Finder finds matches of a pattern.
type Finder interface {
	Find(b []byte, from int) (start, end int, ok bool, err error)
}

// ReplacePattern replaces the matches of a pattern.
type ReplacePattern struct {
	Pattern Finder
	New     string
}

// Apply implements [Normalizer].
func (r ReplacePattern) Apply(_ *uni.Tables, t *Text) error { return t.Replace(r.New, r.Pattern.Find) }

// ByteSpelling replaces each byte by the character that spells it.
type ByteSpelling struct{}

// Apply implements [Normalizer].
func (ByteSpelling) Apply(_ *uni.Tables, t *Text) error {
	t.Spell()
	return nil
}
