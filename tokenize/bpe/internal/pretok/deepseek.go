package pretok

import "github.com/turnpack/turnpack/tokenize/internal/uni"

// deepseek scans the three splits of DeepSeek-V3 at once: \p{N}{1,3}, then runs
// of CJK and kana, then in what is left
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where characters that begin no match gather into pieces of their own. Each
// split sees only its own segment, so look-ahead stops at the segment's end.
type deepseek struct{ base }

func (d *deepseek) Next(s []byte, i int) int {
	f, size := d.at(s, i)
	switch {
	case f&uni.N != 0:
		return d.number(s, i, 3)
	case f&uni.Kana != 0:
		return d.while(s, i+size, uni.Kana)
	}
	if p := d.match(s, i); p > 0 {
		return p
	}
	// a gap: up to the next place where a segment ends or a match begins
	for p := i + size; ; {
		f, size := d.at(s, p)
		if size == 0 || f&(uni.N|uni.Kana) != 0 || d.match(s, p) > 0 {
			return p
		}
		p += size
	}
}

func (d *deepseek) word(s []byte, p int) int {
	for {
		f, size := d.at(s, p)
		if f&(uni.L|uni.M) == 0 || f&uni.Kana != 0 {
			return p
		}
		p += size
	}
}

// match returns the end of the third split's match at p, 0 for none.
func (d *deepseek) match(s []byte, p int) int {
	f, size := d.at(s, p)
	c := s[p]
	if f&(uni.P|uni.S) != 0 && c < 0x80 {
		q := p + 1
		for q < len(s) && (s[q]|0x20) >= 'a' && (s[q]|0x20) <= 'z' {
			q++
		}
		if q > p+1 {
			return q
		}
	}
	if f&(uni.L|uni.M) != 0 {
		return d.word(s, p+size)
	}
	if f&(uni.P|uni.S) == 0 && c != '\r' && c != '\n' {
		if q := d.word(s, p+size); q > p+size {
			return q
		}
	}
	q := p
	if c == ' ' {
		q++
	}
	if end := d.marks(s, q); end > q {
		return newlines(s, end, false)
	}
	if f&uni.Space == 0 {
		return 0
	}
	return d.spaces(s[:d.segment(s, p)], p, true)
}

func (d *deepseek) marks(s []byte, p int) int {
	for {
		f, size := d.at(s, p)
		if f&(uni.P|uni.S) == 0 || f&uni.Kana != 0 {
			return p
		}
		p += size
	}
}

// segment returns the end of the white space at p, which is where the segment
// ends if a number or kana follows; otherwise one character more is seen.
func (d *deepseek) segment(s []byte, p int) int {
	p = d.while(s, p, uni.Space)
	f, size := d.at(s, p)
	if f&(uni.N|uni.Kana) != 0 {
		return p
	}
	return p + size
}
