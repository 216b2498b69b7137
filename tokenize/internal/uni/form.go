package uni

import (
	"cmp"
	"slices"
)

const (
	hangulS, hangulL, hangulV, hangulT = 0xAC00, 0x1100, 0x1161, 0x11A7
	countL, countV, countT             = 19, 21, 28
	countS                             = countL * countV * countT
)

// Char is one character of a normal form. Change is what the reference's alignment needs: 1 for an inserted
// character, 0 for a replaced one, −n for one that also replaces the n characters after it.
type Char struct {
	R      rune
	Change int32
}

// Decompose appends NFD (compat: NFKD) of text to dst. If most is not 0, it stops at the first character after which
// dst has more than most characters.
func (t *Tables) Decompose(dst []Char, text []byte, compat bool, most int) []Char {
	marks, last, ordered := len(dst), uint8(0), true // since the last starter
	flush := func() {
		if !ordered {
			slices.SortStableFunc(dst[marks:], func(a, b Char) int { return cmp.Compare(t.class(a.R), t.class(b.R)) })
		}
		last, ordered = 0, true
	}
	push := func(r rune, change int32) {
		class := t.class(r)
		if class == 0 {
			flush()
		}
		ordered = ordered && class >= last
		last = class
		dst = append(dst, Char{r, change})
		if class == 0 {
			marks = len(dst)
		}
	}
	for i := 0; i < len(text) && (most == 0 || len(dst) <= most); {
		r, size := DecodeRune(text[i:])
		i += size
		if r < 0xC0 && !compat || r < 0x80 {
			flush()
			dst = append(dst, Char{r, 0})
			marks = len(dst)
			continue
		}
		d := t.nfd[r]
		if compat {
			if k, ok := t.nfkd[r]; ok {
				d = k
			}
		}
		switch {
		case r >= hangulS && r < hangulS+countS:
			s := r - hangulS
			push(hangulL+s/(countV*countT), 0)
			push(hangulV+s%(countV*countT)/countT, 1)
			if s%countT != 0 {
				push(hangulT+s%countT, 1)
			}
		case d == nil:
			push(r, 0)
		default:
			for k, c := range d {
				push(c, int32(min(k, 1)))
			}
		}
	}
	flush()
	return dst
}

// firstJoining is the first character that can be the second of a pair.
const firstJoining = 0x300

func (t *Tables) pair(a, b rune) (rune, bool) {
	if b < firstJoining {
		return 0, false
	}
	if a >= hangulL && a < hangulL+countL && b >= hangulV && b < hangulV+countV {
		return hangulS + ((a-hangulL)*countV+(b-hangulV))*countT, true
	}
	if a >= hangulS && a < hangulS+countS && (a-hangulS)%countT == 0 && b > hangulT && b < hangulT+countT {
		return a + (b - hangulT), true
	}
	c, ok := t.pairs[[2]rune{a, b}]
	return c, ok
}

// Recompose turns NFD characters into NFC in place. Marks that do not join the base before them stay after it, in
// order, with their Change.
func (t *Tables) Recompose(d []Char) []Char {
	out := d[:0]
	base := -1 // index in out of the last starter
	var last uint8
	for _, c := range d {
		class := t.class(c.R)
		if base >= 0 {
			if blocked := last != 0 && last >= class; !blocked {
				if r, ok := t.pair(out[base].R, c.R); ok {
					out[base].R = r
					out[base].Change += c.Change - 1
					continue
				}
			}
		}
		out = append(out, c)
		if class == 0 {
			base, last = len(out)-1, 0
		} else if base >= 0 {
			last = class
		}
	}
	return out
}
