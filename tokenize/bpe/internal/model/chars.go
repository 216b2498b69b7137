package model

import "unicode/utf8"

// chars holds, for characters of two and three bytes, the token that merging may
// begin with in place of the bytes, plus one. Most of the work on Chinese, Japanese,
// Korean and Cyrillic text is putting bytes together to characters, and this leaves
// it out.
//
// It is exact. The merges that make a character of its bytes have ranks up to some r.
// What could keep one of them from happening is a merge of some of its bytes, not all,
// with the character before or after it. Where all such merges, of a character that is
// not ASCII, have ranks above r, they come later, as the lowest rank goes first. So
// the token stands for the character between characters that are not ASCII, and at
// the ends of a piece.
type chars [1 << 16]int32

// charBytes is what newChars needs to know of a token: the character that
// it is, of 2 or 3 bytes, and its first and last byte.
type charBytes struct {
	char        rune // 0 for none
	first, last byte
}

// newChars returns nil where no character has such a token.
func newChars(m *Model, tokens []charBytes) *chars {
	// the lowest rank of a merge by which a beginning of a character joins what is
	// before it, and an end of one what is after it
	before, after := map[int32]uint32{}, map[int32]uint32{}
	lower := func(ranks map[int32]uint32, id int32, rank uint32) {
		if old, ok := ranks[id]; !ok || rank < old {
			ranks[id] = rank
		}
	}
	m.Pairs.each(func(s *pairSlot) {
		a, b := int32(s.key>>32), int32(uint32(s.key))
		x, y := tokens[a], tokens[b]
		if y.first >= 0xC0 && x.last >= utf8.RuneSelf {
			lower(before, b, s.rank)
			lower(after, a, s.rank)
		}
	})
	least := func(ranks map[int32]uint32, ids ...int32) uint32 {
		out := uint32(noRank)
		for _, id := range ids {
			if rank, ok := ranks[id]; ok {
				out = min(out, rank)
			}
		}
		return out
	}
	var c *chars
	for id, x := range tokens {
		if x.char == 0 {
			continue
		}
		var buf [utf8.UTFMax]byte
		n := utf8.EncodeRune(buf[:], x.char)
		one, two, three := m.bytes[buf[0]], m.bytes[buf[1]], m.bytes[buf[2]]
		rank, token := m.Pairs.find(one, two)
		others := min(least(before, one), least(after, two))
		if n == 3 {
			rank23, token23 := m.Pairs.find(two, three)
			others = min(least(before, one, token), least(after, three, token23))
			var last uint32
			if rank <= rank23 {
				last, token = m.Pairs.find(token, three)
			} else {
				rank = rank23
				last, token = m.Pairs.find(one, token23)
			}
			rank = max(rank, last)
		}
		if rank < others && token == int32(id) {
			if c == nil {
				c = new(chars)
			}
			c[x.char] = token + 1
		}
	}
	return c
}

// initial appends the symbols that merging of piece, valid UTF-8, begins with.
func (m *Model) initial(dst []int32, piece []byte) []int32 {
	for i := 0; i < len(piece); {
		c := piece[i]
		if c >= 0xC0 && m.chars != nil && c < 0xF0 && (i == 0 || piece[i-1] >= utf8.RuneSelf) {
			r, end := rune(c&0x1F)<<6|rune(piece[i+1]&0x3F), i+2
			if c >= 0xE0 {
				r, end = rune(c&0x0F)<<12|rune(piece[i+1]&0x3F)<<6|rune(piece[i+2]&0x3F), i+3
			}
			if token := m.chars[r] - 1; token >= 0 && (end == len(piece) || piece[end] >= utf8.RuneSelf) {
				dst = append(dst, token)
				i = end
				continue
			}
		}
		dst = append(dst, m.bytes[c])
		i++
	}
	return dst
}
