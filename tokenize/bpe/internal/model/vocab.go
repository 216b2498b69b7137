// Package model is byte pair encoding itself: the vocabulary, the merges, the
// merging of a piece and what is remembered of pieces.
package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/turnpack/turnpack/rollout"
)

// MaxID bounds token ids: a larger one in a file is taken for damage, because
// tables indexed by id are allocated up to the largest.
const MaxID = 1 << 24

// Vocab maps spellings to ids and back. It is filled once and then read-only.
type Vocab struct {
	arena []byte
	pos   []uint64 // by id: offset<<32 | length, +1 in the length for presence
	table []uint32 // open addressing, id+1
	count int
}

const (
	mix1 = 0x9E3779B97F4A7C15
	mix2 = 0xD6E8FEB86659FD93
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) * mix1
	for len(b) >= 8 {
		h = mix(h^binary.LittleEndian.Uint64(b), mix2)
		b = b[8:]
	}
	var w uint64
	for i, c := range b {
		w |= uint64(c) << (8 * i)
	}
	return mix(h^w, mix1)
}

// NewVocab makes an empty vocabulary with room for n entries of bytes in all.
func NewVocab(n, bytes int) *Vocab {
	size := 1 << max(4, bits.Len(uint(2*n)))
	return &Vocab{arena: make([]byte, 0, bytes), pos: make([]uint64, 0, n), table: make([]uint32, size)}
}

// Add sets the id of a spelling. A spelling that is there already moves to the
// new id, as in the reference, whose vocabulary is a map.
func (v *Vocab) Add(spelling []byte, id int) error {
	if id < 0 || id >= MaxID {
		return fmt.Errorf("token id %d is outside [0, %d)", id, MaxID)
	}
	if v.count*2 >= len(v.table) {
		v.grow()
	}
	for id >= len(v.pos) {
		v.pos = append(v.pos, 0)
	}
	slot := v.find(spelling)
	if v.table[slot] == 0 {
		v.count++
	}
	v.table[slot] = uint32(id + 1)
	v.pos[id] = uint64(len(v.arena))<<32 | uint64(len(spelling)+1)
	v.arena = append(v.arena, spelling...)
	return nil
}

func (v *Vocab) grow() {
	old := v.table
	v.table = make([]uint32, 2*len(old))
	for _, e := range old {
		if e != 0 {
			b, _ := v.Bytes(int(e - 1))
			v.table[v.find(b)] = e
		}
	}
}

// find returns the slot of a spelling, or the free slot where it would go.
func (v *Vocab) find(spelling []byte) int {
	mask := uint64(len(v.table) - 1)
	for i := hashBytes(spelling) & mask; ; i = (i + 1) & mask {
		e := v.table[i]
		if e == 0 {
			return int(i)
		}
		p := v.pos[e-1]
		if int(uint32(p))-1 == len(spelling) && bytes.Equal(v.arena[p>>32:][:len(spelling)], spelling) {
			return int(i)
		}
	}
}

// Find returns the id of a spelling, −1 for none.
func (v *Vocab) Find(spelling []byte) int32 { return int32(v.table[v.find(spelling)]) - 1 }

// Bytes returns the spelling of id; the caller must not change it.
func (v *Vocab) Bytes(id int) ([]byte, bool) {
	if id < 0 || id >= len(v.pos) || v.pos[id] == 0 {
		return nil, false
	}
	p := v.pos[id]
	n := int(uint32(p)) - 1
	return v.arena[p>>32:][:n:n], true
}

// Len returns the number of spellings, Size one more than the largest id.
func (v *Vocab) Len() int  { return v.count }
func (v *Vocab) Size() int { return len(v.pos) }

// Pairs maps two adjacent tokens to their merge. Most look-ups find nothing; the
// tags, one byte per slot, answer those without touching the slots, and they are
// small enough to stay in cache.
type Pairs struct {
	tags  []uint8 // 0 for a free slot
	slots []pairSlot
	count int

	// right has a bit for each hash of the tokens that may come after a token, by its
	// id: most look-ups end there, on the cache lines of the tokens at hand.
	right []uint64

	// firstTable answers for the pairs of the first 256 ids, which in byte-level
	// vocabularies are the bytes, with one access: rank<<32 | into, or noPair.
	firstTable atomic.Pointer[[1 << 16]uint64]
}

type pairSlot struct {
	key        uint64
	rank, into uint32
}

// noRank is the rank of a pair that does not merge.
const noRank = ^uint32(0)

// NewPairs makes a table with room for n merges.
func NewPairs(n int) *Pairs {
	size := 1 << max(4, bits.Len(uint(n+n/2)))
	return &Pairs{tags: make([]uint8, size), slots: make([]pairSlot, size)}
}

func pairKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// Add sets the merge of a and b. A pair that is there already takes the new rank.
func (p *Pairs) Add(a, b, into int32, rank uint32) {
	if 4*p.count >= 3*len(p.slots) {
		old := &Pairs{tags: p.tags, slots: p.slots}
		grown := NewPairs(len(old.slots)) // twice the slots
		p.tags, p.slots, p.count = grown.tags, grown.slots, 0
		old.each(func(s *pairSlot) { p.Add(int32(s.key>>32), int32(uint32(s.key)), int32(s.into), s.rank) })
	}
	key := pairKey(a, b)
	i := p.slot(key)
	if p.tags[i] == 0 {
		p.count++
	}
	for int(a) >= len(p.right) {
		p.right = append(p.right, make([]uint64, 1+len(p.right))...)
	}
	p.right[a] |= rightBit(b)
	p.tags[i], p.slots[i] = pairTag(pairHash(key)), pairSlot{key, rank, uint32(into)}
}

func (p *Pairs) each(visit func(*pairSlot)) {
	for i, tag := range p.tags {
		if tag != 0 {
			visit(&p.slots[i])
		}
	}
}

func rightBit(b int32) uint64 { return 1 << (uint32(b) * 0x9E3779B1 >> 26) }

func pairHash(key uint64) uint64 { return mix(key^mix2, mix1) }

func pairTag(hash uint64) uint8 { return uint8(hash>>56) | 1 }

// slot returns the slot of a key, or the free one where it would go.
func (p *Pairs) slot(key uint64) uint64 {
	h := pairHash(key)
	mask := uint64(len(p.tags) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		if t := p.tags[i]; t == 0 || t == pairTag(h) && p.slots[i].key == key {
			return i
		}
	}
}

// find returns the rank and the product of a and b, noRank for none. It compares
// eight tags at once: how many slots a look-up must pass is hard to foresee.
func (p *Pairs) find(a, b int32) (rank uint32, into int32) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	if uint(a) >= uint(len(p.right)) || p.right[a]&rightBit(b) == 0 {
		return noRank, -1
	}
	key := pairKey(a, b)
	h := pairHash(key)
	i := h & uint64(len(p.tags)-1)
	for ; i+8 <= uint64(len(p.tags)); i += 8 {
		group := binary.LittleEndian.Uint64(p.tags[i:])
		differ := group ^ uint64(pairTag(h))*ones
		// the lowest zero byte is marked for certain, others may be by mistake
		for same := (differ - ones) &^ differ & tops; same != 0; same &= same - 1 {
			if s := &p.slots[i+uint64(bits.TrailingZeros64(same)/8)]; s.key == key {
				return s.rank, int32(s.into)
			}
		}
		if (group-ones)&^group&tops != 0 {
			return noRank, -1
		}
	}
	if i = p.slot(key); p.tags[i] == 0 {
		return noRank, -1
	}
	return p.slots[i].rank, int32(p.slots[i].into)
}

// key returns what a place holds for the pair of a and b, and their product.
func (p *Pairs) key(a, b int32, place uint32) (uint64, int32) {
	rank, into := p.find(a, b)
	if rank == noRank {
		return noPair, -1
	}
	return uint64(rank)<<32 | uint64(place), into
}

// first returns the table of the first 256 ids. It is made at first use, lest
// loading pay for it; two callers at once make the same one.
func (p *Pairs) first() *[1 << 16]uint64 {
	if t := p.firstTable.Load(); t != nil {
		return t
	}
	t := new([1 << 16]uint64)
	for i := range t {
		t[i] = noPair
	}
	p.each(func(s *pairSlot) {
		if a, b := s.key>>32, uint64(uint32(s.key)); a < 256 && b < 256 {
			t[a<<8|b] = uint64(s.rank)<<32 | uint64(s.into)
		}
	})
	p.firstTable.Store(t)
	return t
}

// findFirst is find by way of the table that first returned.
func (p *Pairs) findFirst(t *[1 << 16]uint64, a, b int32) (rank uint32, into int32) {
	if uint32(a) < 256 && uint32(b) < 256 {
		x := t[uint16(a)<<8|uint16(b)]
		return uint32(x >> 32), int32(uint32(x))
	}
	return p.find(a, b)
}

// ID is the id type of results.
type ID = rollout.TokenID
