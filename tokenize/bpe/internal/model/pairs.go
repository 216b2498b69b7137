package model

import (
	"math/bits"
	"slices"
)

// Pairs maps two adjacent tokens to their merge. What a look-up costs is to wait for
// memory, so the pairs of a left token lie together: the tokens at hand are looked up
// again and again, and frequent ones stay in cache.
type Pairs struct {
	added []addedPair // until done
	left  []rights    // by left token
	// slots holds the pairs of each left token in turn, by open addressing: the right
	// token plus one, then the rank; noRank where it is free, as half of them are or more.
	slots []uint64
	// into has the product of the pairs of a rank, nil where that is the rank.
	into []int32
	made []halves // by token; nil where into is not
}

type addedPair struct {
	a, b int32
	rank uint32
}

// rights says where the pairs of a left token are.
type rights struct {
	first, mask uint32
}

// halves are the two tokens whose merge makes a token.
type halves struct{ a, b int32 }

const (
	isFirst = -1 // in place of a half: merging begins with the token
	notMade = -2 // no text is merged into it
)

// noRank is the rank of a pair that does not merge.
const noRank = ^uint32(0)

// NewPairs makes a table with room for n merges.
func NewPairs(n int) *Pairs { return &Pairs{added: make([]addedPair, 0, n), into: make([]int32, 0, n)} }

// Add sets the merge of a and b. A pair that is there already takes the new rank. All
// merges of a rank have the same product.
func (p *Pairs) Add(a, b, into int32, rank uint32) {
	p.added = append(p.added, addedPair{a, b, rank})
	for int(rank) >= len(p.into) {
		p.into = append(p.into, -1)
	}
	p.into[rank] = into
}

// done ends the adding of merges; look-ups come after it. first are the tokens that
// merging begins with, where those of one text are one token, else nil; known says that
// made is to have no token that text is never merged into.
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

// order makes ranks of products, where merges are listed by what they make. That changes
// nothing: merging the text of a token goes one way, so one merge at most makes it, and
// the ranks of others do not matter. single says that no token has several.
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

// live fills made, and returns the merges but those of tokens that another one makes:
// files made from rank files name every way to cut a token in two. A merge happens if the
// ones before it leave its tokens side by side in the text of both. In some files a few
// tokens are made of younger ones only; they count as not made, and so do those made of them.
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

// apart reports whether the merges of ranks below a limit leave a and b side by side in
// the text of both, if that is known. They do if no half of them that lies at the seam, or
// half of a half, merges across it before it becomes part of the next.
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
		default: // what lies left goes first, in the same rank, too
			limit, b = uint32(b)+1, y.a
		}
	}
	return false
}

// build makes the table of some merges.
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

// slot returns the slot of a pair, or the free one where it would go.
func (p *Pairs) slot(a, b int32) *uint64 {
	l := &p.left[a]
	for i := uint32(b) * 0x9E3779B1 >> 6; ; i++ {
		s := &p.slots[l.first+i&l.mask]
		// free or found in one branch: which of them it is, is anyone's guess
		if right := *s >> 32; right*(right^uint64(uint32(b+1))) == 0 {
			return s
		}
	}
}

// each visits the pairs.
func (p *Pairs) each(visit func(a, b int32, rank uint32)) {
	for a, l := range p.left {
		for _, s := range p.slots[l.first : l.first+l.mask+1] {
			if s>>32 != 0 {
				visit(int32(a), int32(s>>32)-1, uint32(s))
			}
		}
	}
}

// find returns the rank of a and b, noRank for none.
func (p *Pairs) find(a, b int32) uint32 {
	if uint(a) >= uint(len(p.left)) {
		return noRank
	}
	return uint32(*p.slot(a, b))
}

// merge is find with the product, −1 for none.
func (p *Pairs) merge(a, b int32) (rank uint32, into int32) {
	if rank = p.find(a, b); rank == noRank {
		return rank, -1
	}
	return rank, p.product(rank)
}

// product returns the token that the pairs of a rank make.
func (p *Pairs) product(rank uint32) int32 {
	if p.into == nil {
		return int32(rank)
	}
	return p.into[rank]
}

// key returns what a place holds for the pair of a and b: its rank, then the place.
func (p *Pairs) key(a, b int32, place uint32) uint64 {
	return uint64(p.find(a, b))<<32 | uint64(place)
}
