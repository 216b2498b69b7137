package pretok

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// blockLen is the number of bytes that a scanner reads at once.
const blockLen = 64

// lanes holds the classes of each ASCII character, each as the lowest bit of a byte: lower case, upper case, digit,
// white space within a line, line end, space, apostrophe, slash. A character of none of the first five is a mark.
type lanes [256]uint64

func newLanes(b *base) *lanes {
	var t lanes
	for c := range b.ascii {
		f := b.ascii[c]
		for k, is := range []bool{
			f&uni.L != 0 && (c < 'A' || c > 'Z'), c >= 'A' && c <= 'Z', f&uni.N != 0,
			f&uni.Space != 0 && c != '\n' && c != '\r', c == '\n' || c == '\r', c == ' ', c == '\'', c == '/',
		} {
			if is {
				t[c] |= 1 << (8 * k)
			}
		}
	}
	return &t
}

// block holds the classes of the first n bytes of a text, with one bit for each byte.
type block struct {
	n                                                     int
	lower, upper, digit, space, line, blank, quote, slash uint64
}

// read classifies the ASCII characters at the start of s, up to blockLen.
func (t *lanes) read(b *block, s *[blockLen]byte) {
	var x [8]uint64
	b.n = blockLen
	for k := range x {
		w := binary.LittleEndian.Uint64(s[8*k:])
		x[k] = t[byte(w)] | t[byte(w>>8)]<<1 | t[byte(w>>16)]<<2 | t[byte(w>>24)]<<3 |
			t[byte(w>>32)]<<4 | t[byte(w>>40)]<<5 | t[byte(w>>48)]<<6 | t[byte(w>>56)]<<7
		if high := w & highs; high != 0 {
			b.n = 8*k + bits.TrailingZeros64(high)>>3
			break
		}
	}
	// transpose: from all classes of 8 bytes per word to one class of all bytes
	for k := range 4 {
		x[k], x[k+4] = exchange(x[k], x[k+4], 32, 0xFFFFFFFF)
	}
	for _, k := range [4]int{0, 1, 4, 5} {
		x[k], x[k+2] = exchange(x[k], x[k+2], 16, 0xFFFF0000FFFF)
	}
	for k := 0; k < 8; k += 2 {
		x[k], x[k+1] = exchange(x[k], x[k+1], 8, 0xFF00FF00FF00FF)
	}
	b.lower, b.upper, b.digit, b.space, b.line, b.blank, b.quote, b.slash = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
}

// exchange swaps the upper parts of a with the lower parts of b.
func exchange(a, b uint64, shift int, lower uint64) (uint64, uint64) {
	d := (a>>shift ^ b) & lower
	return a ^ d<<shift, b ^ d
}

// rules describes how a family of patterns cuts ASCII text.
type rules struct {
	digits      int  // the maximum number of digits in a piece, 0 for no limit
	cased       bool // a piece ends where upper case follows lower case
	contraction bool // 's and the like are pieces of their own where words may begin
	suffix      bool // 's and the like belong to the word before
	slash       bool // slashes may follow line ends after marks
}

// starts returns the places in b, the block of s, where pieces certainly begin, whatever comes after; the piece at 0
// is not included. The text before the last of them is cut as the pattern cuts it. Patterns with block scanners share
// these rules:
//
//	marks take one space before them, and the line ends after them
//	white space extends to its last line end; of the rest, the last character is separate
//	letters take one mark or white space before them that nothing else takes
func (r *rules) starts(b *block, s *[blockLen]byte) uint64 {
	valid := ^uint64(0) >> (blockLen - b.n)
	letter := (b.lower | b.upper) & valid
	digit, space, line := b.digit&valid, b.space&valid, b.line&valid
	mark := valid &^ (letter | digit | space | line)

	taken := line & (mark << 1) // line ends after marks
	taken = ((line + taken) ^ line) & line
	if r.slash {
		if more := taken & (b.slash >> 1); more != 0 { // Next handles it
			b.n = bits.TrailingZeros64(more)
			return r.starts(b, s)
		}
	}
	line &^= taken
	white := space | line
	out := white &^ (white << 1)

	// White space within a line that is followed by something else: its last character is separate, and its first
	// begins a piece after a line end.
	firsts := space &^ (space << 1)
	ends := space + firsts // after the last characters
	out |= (ends & (letter | digit | mark)) >> 1
	if again := firsts & (line << 1); again != 0 {
		out |= again
		open := ends & (b.line & valid)
		for ; open != 0; open &= open - 1 {
			out &^= last(firsts&(open&-open-1)) & again
		}
		if space>>(b.n-1)&1 != 0 {
			out &^= last(firsts) & again
		}
	}

	first := mark &^ (mark << 1) &^ (b.blank << 1)
	out |= first
	alone := first &^ (mark >> 1)
	out |= letter &^ (letter << 1) &^ ((alone | space) << 1)
	number := digit &^ (digit << 1)
	out |= number
	if r.digits > 0 {
		after := digit // preceded by r.digits digits
		for k := range r.digits {
			after &= digit << (k + 1)
		}
		for number != 0 {
			number = number << r.digits & after
			out |= number
		}
	}
	if r.cased {
		out |= b.upper & (b.lower << 1) & valid
	}
	if r.contraction {
		for q := b.quote & alone & (letter >> 1); q != 0; q &= q - 1 {
			p := bits.TrailingZeros64(q)
			if end := contraction(s[:], p, true); end > p {
				out |= 1 << end & valid
			}
		}
	}
	if r.suffix {
		at := 0
		for q := b.quote & valid & (letter << 1); q != 0; q &= q - 1 {
			p := bits.TrailingZeros64(q)
			if p+3 > b.n {
				out &= 1<<p - 1
				break
			}
			if end := contraction(s[:], p, true); end > p && p != at {
				out = out&^(1<<end-1<<p) | 1<<end&valid
				at = end
			}
		}
	}
	return out &^ 1
}

// last returns x with only its highest bit, 0 for 0.
func last(x uint64) uint64 { return 1 << 63 >> bits.LeadingZeros64(x) }

// scanner cuts ASCII text block by block and other text piece by piece.
type scanner struct {
	pattern
	rules
	lanes *lanes
}

// pieceScanner cuts text piece by piece.
type pieceScanner struct{ pattern }

// Ends implements [Splitter].
func (o pieceScanner) Ends(dst []int32, s []byte, i int) []int32 {
	for i < len(s) && len(dst) < cap(dst) {
		i = o.Next(s, i)
		dst = append(dst, int32(i))
	}
	return dst
}

// Ends implements [Splitter].
func (c *scanner) Ends(dst []int32, s []byte, i int) []int32 {
	var b block
	var rest [blockLen]byte
	for i < len(s) {
		if cap(dst)-len(dst) < blockLen {
			if len(dst) == cap(dst) || len(dst) > 0 && i+blockLen <= len(s) {
				return dst
			}
		} else if s[i] < utf8.RuneSelf {
			text := &rest
			if i+blockLen <= len(s) {
				text = (*[blockLen]byte)(s[i:])
			} else {
				n := copy(rest[:], s[i:])
				rest[n] = utf8.RuneSelf
			}
			if c.lanes.read(&b, text); b.n > 1 {
				if starts := c.starts(&b, text); starts != 0 {
					at := i
					for ; starts != 0; starts &= starts - 1 {
						at = i + bits.TrailingZeros64(starts)
						dst = append(dst, int32(at))
					}
					i = at
					continue
				}
			}
		}
		i = c.Next(s, i)
		dst = append(dst, int32(i))
	}
	return dst
}
