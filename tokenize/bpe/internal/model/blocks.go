package model

const (
	// blocksLen is the number of symbols up to which blocks beat a heap.
	blocksLen = 512
	blockLen  = 8
	// noPair is the key of a place whose pair does not merge.
	noPair = ^uint64(0)
)

// blocks is the working memory of inBlocks: the pairs at each place, the best of
// each block of places, and the places as a list.
type blocks struct {
	keys       [blocksLen]uint64 // rank<<32 | place
	best       [blocksLen / blockLen]uint64
	into       [blocksLen]int32
	prev, next [blocksLen]int32
}

// settle finds the best pair of block k again.
func (b *blocks) settle(k uint32) {
	c := (*[blockLen]uint64)(b.keys[k*blockLen:])
	b.best[k] = min(min(min(c[0], c[1]), min(c[2], c[3])), min(min(c[4], c[5]), min(c[6], c[7])))
}

// inBlocks merges up to blocksLen symbols. To find the best pair it looks at the
// best of each block, and after a merge at the few blocks that changed: without
// branches, that costs less than a heap, which keeps stale entries besides.
func (m *merger) inBlocks(s []sym) []sym {
	b, n := &m.block, len(s)
	first := m.pairs.first()
	count := (n + blockLen - 1) / blockLen
	for i := range s {
		b.keys[i], b.prev[i], b.next[i] = noPair, int32(i-1), int32(i+1)
		if i+1 < n {
			if rank, into := m.pairs.findFirst(first, s[i].id, s[i+1].id); rank != noRank {
				b.keys[i], b.into[i] = uint64(rank)<<32|uint64(i), into
			}
		}
	}
	for i := n; i < count*blockLen; i++ {
		b.keys[i] = noPair
	}
	for k := range count {
		b.settle(uint32(k))
	}
	best := b.best[:count]
	for {
		top := noPair
		for _, x := range best {
			top = min(top, x)
		}
		if top == noPair {
			break
		}
		i := uint32(top)
		j := uint32(b.next[i])
		s[i].id = b.into[i]
		s[i].n += s[j].n
		s[i].w += s[j].w
		k, p := b.next[j], b.prev[i]
		b.next[i] = k
		b.keys[i], b.keys[j] = noPair, noPair
		if int(k) < n {
			b.prev[k] = int32(i)
			b.keys[i], b.into[i] = m.pairs.key(s[i].id, s[k].id, i)
		}
		if p >= 0 {
			b.keys[p], b.into[p] = m.pairs.key(s[p].id, s[i].id, uint32(p))
			if q := uint32(p) / blockLen; q != i/blockLen {
				b.settle(q)
			}
		}
		b.settle(i / blockLen)
		if q := j / blockLen; q != i/blockLen {
			b.settle(q)
		}
	}
	out := s[:0]
	for i := int32(0); int(i) < n; i = b.next[i] {
		out = append(out, s[i])
	}
	return out
}
