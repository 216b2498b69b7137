package model

import (
	"container/heap"
	"slices"
)

// sym is a token under construction: its id, and how many initial symbols and bytes of the piece it spans.
type sym struct {
	id, n, w int32
}

// symbols appends the initial symbols [from, to) of a piece to dst.
type symbols func(dst []sym, from, to int) []sym

// merger holds the working memory of merging; it is not safe for concurrent use.
type merger struct {
	pairs *Pairs
	block blocks
	few   struct { // of shrink
		keys         [smallLen]uint64
		before, next [smallLen]uint8
	}
	chunk merged
	probe merged
	read  []sym
	out   []sym
}

// merged is a sequence of initial symbols and the tokens that merging it gave.
type merged struct{ initial, tokens []sym }

const (
	// shortLen is the number of symbols up to which scanning for the best pair is faster than blocks. smallLen is a
	// power of two, at least shortLen.
	shortLen = 32
	smallLen = 32
	// chunkLen is the number of symbols merged at once. Longer pieces are merged in overlapping chunks, whose working
	// memory stays in cache.
	chunkLen = 256
	overlap  = 16
)

// merge applies the merges to the n symbols of a piece, lowest rank first, leftmost among equals. It returns the
// tokens in memory of m.
func (m *merger) merge(n int, piece symbols) []sym {
	if n > blocksLen {
		return m.long(n, piece)
	}
	m.read = piece(m.read[:0], 0, n)
	return m.whole(m.read)
}

// whole merges s at once, whatever its length, and returns the tokens in the memory of s.
func (m *merger) whole(s []sym) []sym {
	switch {
	case len(s) < 2:
		return s
	case len(s) <= shortLen:
		return m.short(s)
	case len(s) <= blocksLen:
		return m.inBlocks(s)
	}
	return m.queue(s)
}

// short scans all pairs for each merge.
func (m *merger) short(s []sym) []sym {
	var ids [smallLen]int32
	for i := range s {
		ids[i] = s[i].id
	}
	ends := m.shrink(&ids, len(s))
	out := s[:0]
	for i := 0; i < len(s); {
		x := s[i]
		x.id = ids[i]
		next := int(ends[i])
		for k := i + 1; k < next; k++ {
			x.n += s[k].n
			x.w += s[k].w
		}
		out = append(out, x)
		i = next
	}
	return out
}

// small appends the tokens of up to smallLen symbols.
func (m *merger) small(dst, symbols []int32) []int32 {
	var ids [smallLen]int32
	n := copy(ids[:], symbols)
	ends := m.shrink(&ids, n)
	for i := 0; i < n; i = int(ends[i&(smallLen-1)]) {
		dst = append(dst, ids[i&(smallLen-1)])
	}
	return dst
}

// shrink merges the n symbols in ids, n ≤ smallLen. Each token replaces its first symbol; the result is where each
// token ends. A pair is stored as rank and place in one number, so that the least is found without branches.
func (m *merger) shrink(ids *[smallLen]int32, n int) *[smallLen]uint8 {
	const mask = smallLen - 1
	keys, before, next := &m.few.keys, &m.few.before, &m.few.next
	for i := range n {
		before[i&mask], next[i&mask] = uint8(i-1), uint8(i+1)
		keys[i&mask] = noPair
		if i+1 < n {
			keys[i&mask] = m.pairs.key(ids[i&mask], ids[(i+1)&mask], uint32(i))
		}
	}
	for i := n; i < fan || i%fan != 0; i++ {
		keys[i&mask] = noPair
	}
	for {
		top := least((*[fan]uint64)(keys[:]))
		for i := fan; i < n; i += fan {
			top = min(top, least((*[fan]uint64)(keys[i&mask:])))
		}
		if top >= noPair {
			return next
		}
		i := int(top) & mask
		j := int(next[i]) & mask
		ids[i] = m.pairs.product(uint32(top >> 32))
		k := int(next[j])
		next[i] = uint8(k)
		keys[i], keys[j] = noPair, noPair
		if k < n {
			before[k&mask] = uint8(i)
			keys[i] = m.pairs.key(ids[i], ids[k&mask], uint32(i))
		}
		if i > 0 {
			p := int(before[i]) & mask
			keys[p] = m.pairs.key(ids[p], ids[i], uint32(p))
		}
	}
}

// queue merges s with a heap of pairs ordered by rank, then place. An entry is stale if the pair at its place has
// another rank by now. It serves the few parts that are too long for blocks.
func (m *merger) queue(s []sym) []sym {
	n := len(s)
	rank, prev, next := make([]uint32, n), make([]int32, n), make([]int32, n)
	h := make(places, 0, n)
	pair := func(i int32) {
		rank[i] = noRank
		if k := next[i]; int(k) < n {
			if rank[i] = m.pairs.find(s[i].id, s[k].id); rank[i] != noRank {
				heap.Push(&h, uint64(rank[i])<<32|uint64(i))
			}
		}
	}
	for i := range int32(n) {
		prev[i], next[i] = i-1, i+1
		pair(i)
	}
	for len(h) > 0 {
		top := heap.Pop(&h).(uint64)
		i := int32(uint32(top))
		if rank[i] != uint32(top>>32) {
			continue
		}
		j := next[i]
		s[i].id = m.pairs.product(rank[i])
		s[i].n += s[j].n
		s[i].w += s[j].w
		rank[j] = noRank
		next[i] = next[j]
		if k := next[i]; int(k) < n {
			prev[k] = i
		}
		pair(i)
		if k := prev[i]; k >= 0 {
			pair(k)
		}
	}
	out := s[:0]
	for i := int32(0); int(i) < n; i = next[i] {
		out = append(out, s[i])
	}
	return out
}

// places is a heap of pairs: rank<<32 | place.
type places []uint64

func (h places) Len() int           { return len(h) }
func (h places) Less(i, j int) bool { return h[i] < h[j] }
func (h places) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *places) Push(x any)        { *h = append(*h, x.(uint64)) }
func (h *places) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// long merges chunk by chunk. Two facts make that exact for any table of merges. Adjacent tokens of an encoding are
// the encoding of the text they span. And a sequence is the encoding of its text if every two neighbours are the
// encoding of theirs: merges inside a token do not depend on its surroundings until a merge crosses a boundary, and
// the first such merge would also cross it in the two neighbours alone. So a chunk can be joined to the tokens before
// it at any common boundary whose two sides are such neighbours.
func (m *merger) long(n int, piece symbols) []sym {
	out := m.out[:0]
	end := 0 // number of initial symbols that out covers
	for over := overlap; end < n; {
		keep, at := len(out), end
		for keep > 0 && end-at < over {
			keep--
			at -= int(out[keep].n)
		}
		to := min(n, end+chunkLen)
		chunk := m.again(&m.chunk, piece, at, to)
		cut, pos, ok := m.join(piece, out, chunk, keep, at, end)
		if !ok {
			over *= 4
			continue
		}
		over = overlap
		out = append(out[:cut], chunk[pos:]...)
		end = to
	}
	m.out = out
	return out
}

// again merges a part of a piece, or returns last's tokens if the symbols are the same: long pieces are often one
// repeated character.
func (m *merger) again(last *merged, piece symbols, from, to int) []sym {
	m.read = piece(m.read[:0], from, to)
	if !slices.Equal(m.read, last.initial) {
		last.initial = append(last.initial[:0], m.read...)
		last.tokens = append(last.tokens[:0], m.whole(m.read)...)
	}
	return last.tokens
}

// join finds a boundary common to out, from its token keep on, and chunk, which both start at initial symbol at, that
// may be a boundary of the whole encoding. It returns how many tokens of out to keep and the token of chunk that
// follows.
func (m *merger) join(piece symbols, out, chunk []sym, keep, at, end int) (cut, pos int, ok bool) {
	a, b := at, at
	i, j := keep, 0
	for {
		if a == b {
			if i == 0 || j == len(chunk) || m.neighbours(piece, out[i-1], chunk[j], a) {
				return i, j, j < len(chunk)
			}
		}
		switch {
		case a <= b && i < len(out):
			a += int(out[i].n)
			i++
		case b < a && j < len(chunk):
			b += int(chunk[j].n)
			j++
		default:
			return 0, 0, false
		}
		if b > end {
			return 0, 0, false
		}
	}
}

// neighbours reports whether x, which ends at initial symbol p, and y, which begins there, are the encoding of the
// text they span.
func (m *merger) neighbours(piece symbols, x, y sym, p int) bool {
	got := m.again(&m.probe, piece, p-int(x.n), p+int(y.n))
	return len(got) == 2 && got[0].n == x.n && got[0].id == x.id && got[1].id == y.id
}
