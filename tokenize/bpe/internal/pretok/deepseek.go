package pretok

import "github.com/turnpack/turnpack/tokenize/internal/uni"

// deepseek scans the three splits of DeepSeek-V3 at once: \p{N}{1,3}, then runs of CJK and kana, then in each part
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where characters that begin no match form pieces of their own. The last split sees one segment at a time, kana or
// not, and does not look beyond its end.
type deepseek struct{ base }

// Next implements [pattern].
func (d *deepseek) Next(s []byte, i int) int {
	f, size := d.at(s, i)
	if f&uni.N != 0 {
		return d.number(s, i, 3)
	}
	kana := f & uni.Kana
	if p := d.match(s, i, kana); p > 0 {
		return p
	}
	// A gap extends to the next place where the segment ends or a match begins.
	for p := i + size; ; {
		f, size := d.at(s, p)
		if size == 0 || f&(uni.N|uni.Kana) != kana || d.match(s, p, kana) > 0 {
			return p
		}
		p += size
	}
}

// run skips characters that have one of the flags, within the segment.
func (d *deepseek) run(s []byte, p int, flags, kana uint16) int {
	for {
		f, size := d.at(s, p)
		if f&flags == 0 || f&uni.Kana != kana {
			return p
		}
		p += size
	}
}

// match returns the end of the last split's match at p, 0 if there is none.
func (d *deepseek) match(s []byte, p int, kana uint16) int {
	f, size := d.at(s, p)
	c := s[p]
	if f&(uni.P|uni.S) != 0 && c < 0x80 {
		q := p + 1
		for q < len(s) && isLetter(s[q]) {
			q++
		}
		if q > p+1 {
			return q
		}
	}
	if f&(uni.L|uni.M) != 0 {
		return d.run(s, p+size, uni.L|uni.M, kana)
	}
	if f&(uni.P|uni.S) == 0 && c != '\r' && c != '\n' {
		if q := d.run(s, p+size, uni.L|uni.M, kana); q > p+size {
			return q
		}
	}
	q := p
	if c == ' ' {
		q++
	}
	if end := d.run(s, q, uni.P|uni.S, kana); end > q {
		if kana != 0 {
			return end // the line ends after it belong to another segment
		}
		return newlines(s, end, false)
	}
	if f&uni.Space == 0 {
		return 0
	}
	return d.spaces(s[:d.segment(s, p)], p, true)
}

// segment returns the end of the white space at p, where the segment ends if a number or kana follows; otherwise the
// split sees one more character.
func (d *deepseek) segment(s []byte, p int) int {
	p = d.while(s, p, uni.Space)
	f, size := d.at(s, p)
	if f&(uni.N|uni.Kana) != 0 {
		return p
	}
	return p + size
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
