package model

import (
	"math/bits"
	"slices"
)

// Pairs maps two adjacent tokens to their merge. The cost of a lookup is waiting for memory, so the pairs of a left
// token are stored together: the current tokens are looked up repeatedly, and frequent ones stay in cache.
type Pairs struct {
	added []addedPair // until done
	left  []rights    // by left token
	// slots holds the pairs of each left token in turn, with open addressing: the right token plus one, then the
	// rank. A free slot, at least half of them, has noRank.
	slots []uint64
	// into is the product of the pairs of a rank, nil if the product is the rank itself.
	into []int32
	made []halves // by token; nil if into is not nil
}

type addedPair struct {
	a, b int32
	rank uint32
}

// rights is the range of slots with the pairs of a left token.
type rights struct {
	first, mask uint32
}

// halves are the two tokens that merge to a token.
type halves struct{ a, b int32 }

const (
	isFirst = -1 // instead of a half: merging begins with the token
	notMade = -2 // merging never makes the token
)

// noRank is the rank of a pair that does not merge.
const noRank = ^uint32(0)

// NewPairs returns a table with room for n merges.
func NewPairs(n int) *Pairs { return &Pairs{added: make([]addedPair, 0, n), into: make([]int32, 0, n)} }

// Add sets the rank and product of merging a and b. An existing pair gets the new rank. All merges of a rank have the
// same product.
func (p *Pairs) Add(a, b, into int32, rank uint32) {
	p.added = append(p.added, addedPair{a, b, rank})
	for int(rank) >= len(p.into) {
		p.into = append(p.into, -1)
	}
	p.into[rank] = into
}

// done ends the adding of merges; lookups are valid only after it. first are the tokens with which merging begins if
// each text has a single one, else nil. With known set, made has no token that merging never makes.
func (p *Pairs) done(first []int32, known bool) {
	single, ordered := p.order(first)
	p.build(p.added)
	if ordered {
		if live := p.live(single && !known); len(live) < len(p.added) {
			p.build(live)
		}
	}
	p.added = nil
}

// order replaces ranks by products if merges are listed in the order of their products. That does not change results:
// merging the text of a token is deterministic, so at most one merge makes it, and the ranks of the others do not
// matter. single reports whether each token has only one merge.
func (p *Pairs) order(first []int32) (single, ordered bool) {
	most := slices.Max(append(slices.Clone(first), -1))
	for _, x := range p.added {
		most = max(most, x.a, x.b, p.into[x.rank])
	}
	p.made = make([]halves, most+1)
	for i := range p.made {
		p.made[i].a = notMade
	}
	for _, id := range first {
		p.made[id].a = isFirst
	}
	last, rank := int32(-1), uint32(0)
	single, ordered = true, first != nil
	for _, x := range p.added {
		into := p.into[x.rank]
		if into < last || x.rank < rank || p.made[into].a == isFirst {
			ordered = false
		}
		single = single && into > last
		last, rank = into, x.rank
	}
	if !ordered {
		p.made = nil
		return false, false
	}
	for i := range p.added {
		x := &p.added[i]
		x.rank = uint32(p.into[x.rank])
	}
	p.into = nil
	return single, true
}

// live fills made and returns the merges without those whose token another merge makes: files made from rank files
// list every way to cut a token in two. A merge happens if the earlier merges leave its two tokens side by side in
// their joint text. In some files a few tokens are made only from later tokens; these and tokens made from them count
// as not made.
func (p *Pairs) live(all bool) []addedPair {
	for _, x := range p.added {
		to := &p.made[x.rank]
		if to.a == notMade && p.made[x.a].a != notMade && p.made[x.b].a != notMade && (all || p.apart(x.a, x.b, x.rank)) {
			*to = halves{x.a, x.b}
		}
	}
	return slices.DeleteFunc(p.added, func(x addedPair) bool {
		to := p.made[x.rank]
		return to.a != notMade && to != halves{x.a, x.b}
	})
}

// apart reports whether the merges of ranks below limit are known to leave a and b side by side in their joint text.
// They do if no half at the seam, or half of a half, merges across the seam before it becomes part of the next.
func (p *Pairs) apart(a, b int32, limit uint32) bool {
	for p.find(a, b) >= limit {
		x, y := p.made[a], p.made[b]
		switch {
		case x.a == notMade || y.a == notMade:
			return false
		case x.a == isFirst && y.a == isFirst:
			return true
		case y.a == isFirst || x.a != isFirst && a > b: // a was made last
			limit, a = uint32(a), x.b
		default: // the left one goes first, also within a rank
			limit, b = uint32(b)+1, y.a
		}
	}
	return false
}

// build builds the table of the given merges.
func (p *Pairs) build(pairs []addedPair) {
	most := int32(-1)
	for _, x := range pairs {
		most = max(most, x.a)
	}
	p.left = make([]rights, most+1)
	for _, x := range pairs {
		p.left[x.a].mask++
	}
	size := uint32(1) // the first slot stays free
	for i := range p.left {
		if l := &p.left[i]; l.mask > 0 {
			l.first, l.mask = size, 1<<bits.Len32(2*l.mask)-1
			size += l.mask + 1
		}
	}
	p.slots = slices.Repeat([]uint64{uint64(noRank)}, int(size))
	for _, x := range pairs {
		*p.slot(x.a, x.b) = uint64(x.b+1)<<32 | uint64(x.rank)
	}
}

// slot returns the slot of a pair, or the free slot for it.
func (p *Pairs) slot(a, b int32) *uint64 {
	l := &p.left[a]
	for i := uint32(b) * 0x9E3779B1 >> 6; ; i++ {
		s := &p.slots[l.first+i&l.mask]
		// one branch for free or found: separate ones are unpredictable
		if right := *s >> 32; right*(right^uint64(uint32(b+1))) == 0 {
			return s
		}
	}
}

// each calls visit for all pairs.
func (p *Pairs) each(visit func(a, b int32, rank uint32)) {
	for a, l := range p.left {
		for _, s := range p.slots[l.first : l.first+l.mask+1] {
			if s>>32 != 0 {
				visit(int32(a), int32(s>>32)-1, uint32(s))
			}
		}
	}
}

// find returns the rank of the pair a, b, noRank if it does not merge.
func (p *Pairs) find(a, b int32) uint32 {
	if uint(a) >= uint(len(p.left)) {
		return noRank
	}
	return uint32(*p.slot(a, b))
}

// merge returns the rank and the product of the pair a, b, or noRank and −1.
func (p *Pairs) merge(a, b int32) (rank uint32, into int32) {
	if rank = p.find(a, b); rank == noRank {
		return rank, -1
	}
	return rank, p.product(rank)
}

// product returns the product of the pairs of a rank.
func (p *Pairs) product(rank uint32) int32 {
	if p.into == nil {
		return int32(rank)
	}
	return p.into[rank]
}

// key returns the key of the pair a, b at a place: its rank, then the place.
func (p *Pairs) key(a, b int32, place uint32) uint64 {
	return uint64(p.find(a, b))<<32 | uint64(place)
}
