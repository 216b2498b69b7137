package model

import "unicode/utf8"

// chars holds, for characters of two and three bytes, a token with which merging may begin instead of with the bytes,
// plus one. For Chinese, Japanese, Korean and Cyrillic text, merging bytes to characters is most of the work, and
// this skips it.
//
// It is exact. The merges that make a character from its bytes have ranks up to some r. Only a merge of some but not
// all of its bytes with a token before or after the character could prevent one of them. If all such merges with the
// adjacent bytes have ranks above r, they come later, since the lowest rank goes first. If all merges that use the
// token also have ranks above r, it exists in time for them and not too early (which fails for 399 characters of
// gpt-oss, 282 of Llama 3, none of Qwen3). So the token replaces the bytes between non-ASCII characters whose bytes
// allow it, and at the ends of a piece.
type chars struct {
	of [1 << 16]charToken

	// glue has a bit for each hash of two characters at the seam of a merge: the last character of its first token
	// and the first of its second. If merging begins with tokens for two adjacent characters that are not in glue,
	// nothing ever merges across them, and the text before and after the seam can be encoded separately.
	glue [1 << 14]uint64
}

// charToken is the token of a character, plus one, and the sets of bytes, by their lower six bits, that may end the
// text before it and begin the text after it.
type charToken struct {
	before, after uint64
	token         int32
}

// joins maps a token that is part of a character to the lowest rank of its merges with tokens that end, or begin,
// with a byte, by the byte's lower six bits.
type joins map[int32]*[64]uint32

func (j joins) add(id int32, b byte, rank uint32) {
	ranks := j[id]
	if ranks == nil {
		ranks = new([64]uint32)
		for k := range ranks {
			ranks[k] = noRank
		}
		j[id] = ranks
	}
	ranks[b&63] = min(ranks[b&63], rank)
}

// above returns the bytes for which all joins of the tokens have a rank above rank.
func (j joins) above(rank uint32, ids ...int32) uint64 {
	out := ^uint64(0)
	for _, id := range ids {
		if ranks := j[id]; ranks != nil {
			for k, r := range ranks {
				if r <= rank {
					out &^= 1 << k
				}
			}
		}
	}
	return out
}

// charBytes describes a token for newChars: the character that it is, if it has 2 or 3 bytes, and its first and last
// byte and character.
type charBytes struct {
	char        rune // 0 for none
	part        bool // it is part of a character
	first, last byte
	head, tail  rune // utf8.RuneError if not a whole character, 0 if ASCII
}

func newCharBytes(b []byte) charBytes {
	x := charBytes{first: b[0], last: b[len(b)-1]}
	if x.last >= utf8.RuneSelf {
		x.tail, _ = utf8.DecodeLastRune(b)
	}
	if x.first >= utf8.RuneSelf {
		var size int
		x.head, size = utf8.DecodeRune(b)
		x.part = len(b) < 3 && x.head == utf8.RuneError
		if size == len(b) && (size == 2 || size == 3) {
			x.char = x.head
		}
	}
	return x
}

func seam(a, b rune) (word, bit uint32) {
	h := (uint32(a)<<16 | uint32(b)) * 0x9E3779B1
	return h >> 18, h >> 12 & 63
}

// glued reports whether a merge may join a token that ends with a to one that begins with b.
func (c *chars) glued(a, b rune) bool {
	word, bit := seam(a, b)
	return c.glue[word]>>bit&1 != 0
}

// newChars returns nil if no character has such a token.
func newChars(m *Model, tokens []charBytes) *chars {
	before, after := joins{}, joins{}
	lowest := make([]uint32, len(tokens)) // lowest rank of the merges that use a token
	for id := range lowest {
		lowest[id] = noRank
	}
	first := make([]byte, len(tokens)) // a copy that stays in cache
	for id := range tokens {
		first[id] = tokens[id].first
	}
	c := new(chars)
	m.Pairs.each(func(a, b int32, rank uint32) {
		x := &tokens[a]
		if x.last < utf8.RuneSelf && first[b] < utf8.RuneSelf {
			return // the loop below does not need it
		}
		lowest[a], lowest[b] = min(lowest[a], rank), min(lowest[b], rank)
		if first[b] < 0xC0 || x.last < utf8.RuneSelf {
			return
		}
		y := &tokens[b]
		if y.part {
			before.add(b, x.last, rank)
		}
		if x.part {
			after.add(a, y.first, rank)
		}
		word, bit := seam(x.tail, y.head)
		c.glue[word] |= 1 << bit
	})
	any := false
	for id, x := range tokens {
		if x.char == 0 {
			continue
		}
		var buf [utf8.UTFMax]byte
		n := utf8.EncodeRune(buf[:], x.char)
		one, two, three := m.bytes[buf[0]], m.bytes[buf[1]], m.bytes[buf[2]]
		rank, token := m.Pairs.merge(one, two)
		front, back := []int32{one}, []int32{two}
		if n == 3 {
			rank23, token23 := m.Pairs.merge(two, three)
			front, back = []int32{one, token}, []int32{three, token23}
			var last uint32
			if rank <= rank23 {
				last, token = m.Pairs.merge(token, three)
			} else {
				rank = rank23
				last, token = m.Pairs.merge(one, token23)
			}
			rank = max(rank, last)
		}
		if rank < lowest[id] && token == int32(id) {
			any = true
			c.of[x.char] = charToken{before.above(rank, front...), after.above(rank, back...), token + 1}
		}
	}
	if !any {
		return nil
	}
	return c
}

// at returns the character at piece[i] and its end if merging of piece, valid UTF-8, begins with it as one token;
// else 0 and the end of the byte.
func (c *chars) at(piece []byte, i int) (rune, int) {
	b := piece[i]
	if b < 0xC0 || b >= 0xF0 {
		return 0, i + 1
	}
	r, end := rune(b&0x1F)<<6|rune(piece[i+1]&0x3F), i+2
	if b >= 0xE0 {
		r, end = rune(b&0x0F)<<12|rune(piece[i+1]&0x3F)<<6|rune(piece[i+2]&0x3F), i+3
	}
	x := &c.of[r]
	if x.token == 0 || i > 0 && !allowed(x.before, piece[i-1]) || end < len(piece) && !allowed(x.after, piece[end]) {
		return 0, i + 1
	}
	return r, end
}

func allowed(bytes uint64, b byte) bool { return b >= utf8.RuneSelf && bytes>>(b&63)&1 != 0 }

// initial appends the tokens with which merging of piece, valid UTF-8, begins.
func (m *Model) initial(dst []int32, piece []byte) []int32 {
	for i := 0; i < len(piece); {
		if m.chars != nil && piece[i] >= utf8.RuneSelf {
			if r, end := m.chars.at(piece, i); r != 0 {
				dst = append(dst, m.chars.of[r].token-1)
				i = end
				continue
			}
		}
		dst = append(dst, m.bytes[piece[i]])
		i++
	}
	return dst
}
