package model

const (
	// blocksLen is the number of symbols up to which blocks are faster than a heap.
	blocksLen = fan * fan * fan
	// fan is the number of places in a block and of blocks in a row.
	fan = 8
	// noPair is the least key of a place whose pair does not merge.
	noPair = uint64(noRank) << 32
)

// blocks is the working memory of inBlocks: the pair at each place, the best pair of each block of places and of each
// row of blocks, and the places as a linked list.
type blocks struct {
	keys       [blocksLen]uint64 // rank<<32 | place
	best       [fan * fan]uint64
	rows       [fan]uint64
	prev, next [blocksLen]int32
}

// least returns the least key of a block. Without branches and with few dependencies it takes a few cycles.
func least(c *[fan]uint64) uint64 {
	return min(min(min(c[0], c[1]), min(c[2], c[3])), min(min(c[4], c[5]), min(c[6], c[7])))
}

// settle updates the best pairs of the block and the row of a place.
func (b *blocks) settle(place uint32) {
	k := place / fan
	b.best[k] = least((*[fan]uint64)(b.keys[k*fan:]))
	k /= fan
	b.rows[k] = least((*[fan]uint64)(b.best[k*fan:]))
}

// inBlocks merges up to blocksLen symbols. It finds the best pair among the best of each row and after a merge
// updates only the few blocks that changed, which is cheaper than a heap with stale entries.
func (m *merger) inBlocks(s []sym) []sym {
	b, n := &m.block, len(s)
	b.fill(m.pairs, s)
	for {
		top := least(&b.rows)
		if top >= noPair {
			break
		}
		i := uint32(top)
		j := uint32(b.next[i])
		s[i].id = m.pairs.product(uint32(top >> 32))
		s[i].n += s[j].n
		s[i].w += s[j].w
		k, p := b.next[j], b.prev[i]
		b.next[i] = k
		b.keys[i], b.keys[j] = noPair, noPair
		if int(k) < n {
			b.prev[k] = int32(i)
			b.keys[i] = m.pairs.key(s[i].id, s[k].id, i)
		}
		if p >= 0 {
			b.keys[p] = m.pairs.key(s[p].id, s[i].id, uint32(p))
			if uint32(p)/fan != i/fan {
				b.settle(uint32(p))
			}
		}
		b.settle(i)
		if j/fan != i/fan {
			b.settle(j)
		}
	}
	out := s[:0]
	for i := int32(0); int(i) < n; i = b.next[i] {
		out = append(out, s[i])
	}
	return out
}

// fill initialises b with the symbols.
func (b *blocks) fill(pairs *Pairs, s []sym) {
	for k := range b.rows {
		b.rows[k] = noPair
	}
	size := (len(s) + fan*fan - 1) &^ (fan*fan - 1)
	for i := range size {
		b.keys[i], b.prev[i], b.next[i] = noPair, int32(i-1), int32(i+1)
		if i+1 < len(s) {
			b.keys[i] = pairs.key(s[i].id, s[i+1].id, uint32(i))
		}
	}
	for i := 0; i < size; i += fan {
		b.best[i/fan] = least((*[fan]uint64)(b.keys[i:]))
	}
	for i := 0; i < size/fan; i += fan {
		b.rows[i/fan] = least((*[fan]uint64)(b.best[i:]))
	}
}
