// Package pretok cuts text into the pieces that byte pair encoding works on, with scanners for the published split
// patterns and generic stages for all others.
package pretok

import (
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// Splitter cuts s, which is valid UTF-8, into pieces without gaps: Next returns the end of the piece that starts at i
// < len(s). It is safe for concurrent use.
type Splitter interface {
	pattern
	// Ends appends the ends of the pieces from i on to dst, until dst is nearly full or s ends. dst has room for more
	// than one.
	Ends(dst []int32, s []byte, i int) []int32
}

type pattern interface {
	Next(s []byte, i int) int
}

// base provides scanners with the flags of characters.
type base struct {
	u     *uni.Tables
	ascii [128]uint16
}

func newBase(u *uni.Tables) base {
	b := base{u: u}
	for c := range b.ascii {
		b.ascii[c] = u.Flags(rune(c))
	}
	return b
}

// at returns the flags and the length of the character at s[p], zeros past the end.
func (b *base) at(s []byte, p int) (uint16, int) {
	if p >= len(s) {
		return 0, 0
	}
	if c := s[p]; c < 0x80 {
		return b.ascii[c], 1
	}
	r, size := uni.DecodeRune(s[p:])
	return b.u.Flags(r), size
}

// while returns the end of the run at p of characters with one of the flags.
func (b *base) while(s []byte, p int, flags uint16) int {
	for p < len(s) {
		if c := s[p]; c < 0x80 {
			if b.ascii[c]&flags == 0 {
				return p
			}
			p++
			continue
		}
		r, size := uni.DecodeRune(s[p:])
		if b.u.Flags(r)&flags == 0 {
			return p
		}
		p += size
	}
	return p
}

// until returns the end of the run at p of characters with none of the flags.
func (b *base) until(s []byte, p int, flags uint16) int {
	for p < len(s) {
		if c := s[p]; c < 0x80 {
			if b.ascii[c]&flags != 0 {
				return p
			}
			p++
			continue
		}
		r, size := uni.DecodeRune(s[p:])
		if b.u.Flags(r)&flags != 0 {
			return p
		}
		p += size
	}
	return p
}

// number returns the end of up to max numbers at p, or of all if max is 0. There is at least one.
func (b *base) number(s []byte, p, max int) int {
	for n := 0; max == 0 || n < max; n++ {
		f, size := b.at(s, p)
		if f&uni.N == 0 {
			break
		}
		p += size
	}
	return p
}

// contraction matches (?i:'s|'t|'re|'ve|'m|'ll|'d) at p with fold set, else only the lower-case forms. It returns the
// end of the match, or p if there is none. With fold the long s (U+017F) is an s, as in the reference.
func contraction(s []byte, p int, fold bool) int {
	if p+1 >= len(s) || s[p] != '\'' {
		return p
	}
	bit := byte(0)
	if fold {
		bit = 0x20
	}
	switch s[p+1] | bit {
	case 's', 't', 'm', 'd':
		return p + 2
	case 'r', 'v':
		if p+2 < len(s) && s[p+2]|bit == 'e' {
			return p + 3
		}
	case 'l':
		if p+2 < len(s) && s[p+2]|bit == 'l' {
			return p + 3
		}
	}
	if fold && p+2 < len(s) && s[p+1] == 0xC5 && s[p+2] == 0xBF {
		return p + 3
	}
	return p
}

const highs = 0x8080808080808080

func newlines(s []byte, p int, slash bool) int {
	for p < len(s) && (s[p] == '\n' || s[p] == '\r' || slash && s[p] == '/') {
		p++
	}
	return p
}

// spaces matches \s*[\r\n]+|\s+(?!\S)|\s+ at i, which is white space; with lines unset, only the last two
// alternatives. Every published pattern ends with these.
func (b *base) spaces(s []byte, i int, lines bool) int {
	p, last, line := i, i, -1
	for p < len(s) {
		c, size := s[p], 1
		if c < utf8.RuneSelf {
			if b.ascii[c]&uni.Space == 0 {
				break
			}
			if c == '\n' || c == '\r' {
				line = p + 1
			}
		} else {
			var f uint16
			if f, size = b.at(s, p); f&uni.Space == 0 {
				break
			}
		}
		last = p
		p += size
	}
	switch {
	case lines && line >= 0:
		return line
	case p == len(s), last == i:
		return p
	}
	return last
}

// words scans the cl100k family:
//
//	contractions|[^\r\n\p{L}\p{N}]?LETTERS+|\p{N}{1,digits}| ?[^\s LETTERS \p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// with final set, \s++$ comes before the white space alternatives.
type words struct {
	base
	letters uint16 // uni.L, or uni.L|uni.M
	digits  int
	final   bool
}

// Next implements [pattern].
func (w *words) Next(s []byte, i int) int {
	f, size := w.at(s, i)
	c := s[i]
	if f&w.letters != 0 {
		return w.while(s, i+size, w.letters)
	}
	if c == '\'' {
		if p := contraction(s, i, true); p > i {
			return p
		}
	}
	if f&uni.N != 0 {
		return w.number(s, i, w.digits)
	}
	if c != '\n' && c != '\r' {
		if g, n := w.at(s, i+size); g&w.letters != 0 {
			return w.while(s, i+size+n, w.letters)
		}
	}
	p := i
	if c == ' ' {
		p++
	}
	if g, n := w.at(s, p); n > 0 && g&(uni.Space|w.letters|uni.N) == 0 {
		return newlines(s, w.until(s, p+n, uni.Space|w.letters|uni.N), false)
	}
	if w.final {
		if end := w.while(s, i, uni.Space); end == len(s) {
			return end
		}
	}
	return w.spaces(s, i, true)
}

// gpt2 scans 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
type gpt2 struct{ b base }

// Next implements [pattern].
func (g *gpt2) Next(s []byte, i int) int {
	if p := contraction(s, i, false); p > i {
		return p
	}
	p := i
	if s[i] == ' ' {
		p++
	}
	f, size := g.b.at(s, p)
	switch {
	case size == 0 || f&uni.Space != 0:
		return g.b.spaces(s, i, false)
	case f&uni.L != 0:
		return g.b.while(s, p+size, uni.L)
	case f&uni.N != 0:
		return g.b.while(s, p+size, uni.N)
	}
	return g.b.until(s, p+size, uni.Space|uni.L|uni.N)
}

// cased scans the o200k family, whose words end where lower case turns to upper:
//
//	[^\r\n\p{L}\p{N}]?UPPER*LOWER+SUFFIX?|[^\r\n\p{L}\p{N}]?UPPER+LOWER*SUFFIX?|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// with UPPER [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and LOWER [\p{Ll}\p{Lm}\p{Lo}\p{M}]. With han set, both exclude \p{Han},
// whose runs are words of their own and are matched first.
type cased struct {
	base
	digits int
	suffix bool
	slash  bool
	han    bool
}

// Next implements [pattern].
func (c *cased) Next(s []byte, i int) int {
	f, size := c.at(s, i)
	if c.han && f&uni.Han != 0 {
		return c.while(s, i+size, uni.Han)
	}
	if f&(uni.L|uni.N) == 0 && s[i] != '\r' && s[i] != '\n' {
		if end := c.lower(s, i+size); end > 0 {
			return c.contract(s, end)
		}
		// without the optional first character, only a mark can begin
		if f&uni.M != 0 {
			if end := c.lower(s, i); end > 0 {
				return c.contract(s, end)
			}
		}
		if end := c.run(s, i+size, uni.Upper); end > i+size { // LOWER* cannot follow because lower found nothing
			return c.contract(s, end)
		}
	} else if f&uni.L != 0 {
		if end := c.lower(s, i); end > 0 {
			return c.contract(s, end)
		}
		return c.contract(s, c.run(s, i, uni.Upper))
	}
	if f&uni.N != 0 {
		return c.number(s, i, c.digits)
	}
	p := i
	if s[i] == ' ' {
		p++
	}
	if g, n := c.at(s, p); n > 0 && g&(uni.Space|uni.L|uni.N) == 0 {
		return newlines(s, c.until(s, p+n, uni.Space|uni.L|uni.N), c.slash)
	}
	return c.spaces(s, i, true)
}

func (c *cased) contract(s []byte, p int) int {
	if c.suffix {
		return contraction(s, p, true)
	}
	return p
}

func (c *cased) cased(s []byte, p int, flag uint16) (uint16, int) {
	f, size := c.at(s, p)
	if f&flag == 0 || c.han && f&uni.Han != 0 {
		return 0, 0
	}
	return f, size
}

// lower matches UPPER*LOWER+ at p and returns its end, 0 if there is no match. Backtracking can only give the last
// characters of UPPER to LOWER. So if no character follows that only LOWER has, the match ends after the last
// character that both have.
func (c *cased) lower(s []byte, p int) int {
	both := 0
	for {
		f, size := c.cased(s, p, uni.Upper)
		if size == 0 {
			break
		}
		p += size
		if f&uni.Lower != 0 {
			both = p
		}
	}
	if end := c.run(s, p, uni.Lower); end > p {
		return end
	}
	return both
}

// run returns the end of UPPER* or LOWER* at p.
func (c *cased) run(s []byte, p int, flag uint16) int {
	for {
		_, size := c.cased(s, p, flag)
		if size == 0 {
			return p
		}
		p += size
	}
}
