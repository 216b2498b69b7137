package model

import (
	"encoding/binary"
	"sync/atomic"
)

// cache remembers the ids of pieces. It is safe for concurrent use, takes no
// lock, and is bounded: when too many pieces find no room it starts afresh.
//
// A piece of up to 16 bytes and 3 ids lives in a slot of 32 bytes that is
// written once: claimed by compare-and-swap, published by the store of meta.
// Longer ones live in a store of segments.
type cache struct {
	short atomic.Pointer[shortTable]
	long  *Segments
}

const (
	shortBits = 16
	longBits  = 12
	ways      = 4 // slots tried for a key, neighbours in memory

	maxShortKey = 16
	maxShortIDs = 3
	idBits      = 21

	// maxLongKey bounds the memory of the long part: with its ids, a key of
	// this size takes up to 2 KiB.
	maxLongKey = 256
)

type shortTable struct {
	slots  []slot
	missed atomic.Int32
}

// slot.meta is 0 for free, 1 for claimed, else hash (upper 56 bits), key length
// (5 bits), number of ids (3 bits).
type slot struct {
	meta atomic.Uint64
	key  [2]uint64
	ids  uint64
}

func newCache() *cache {
	c := &cache{long: NewSegments(longBits)}
	c.short.Store(&shortTable{slots: make([]slot, 1<<shortBits)})
	return c
}

// Key is a piece of up to 16 bytes in two words, zero behind its end.
type key struct{ a, b uint64 }

func shortHash(k key, n int) uint64 { return mix(k.a^mix1, k.b^mix2^uint64(n)<<56) }

// lowMask keeps the n lowest bytes of a word.
var lowMask = [9]uint64{0, 1<<8 - 1, 1<<16 - 1, 1<<24 - 1, 1<<32 - 1, 1<<40 - 1, 1<<48 - 1, 1<<56 - 1, 1<<64 - 1}

// loadKey returns the key of s[i:j], j-i ≤ 16.
func loadKey(s []byte, i, j int) key {
	n := j - i
	if i+16 <= len(s) {
		k := key{binary.LittleEndian.Uint64(s[i:]), 0}
		if n <= 8 {
			k.a &= lowMask[n]
		} else {
			k.b = binary.LittleEndian.Uint64(s[i+8:]) & lowMask[n-8]
		}
		return k
	}
	var buf [16]byte
	copy(buf[:], s[i:j])
	return key{binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint64(buf[8:])}
}

// find returns the slot that holds k, nil for none.
func (t *shortTable) find(k key, n int, h uint64) (s *slot, count int) {
	tag := h&^0xFF | uint64(n)<<3
	at := h >> 8 & (uint64(len(t.slots)) - 1) &^ (ways - 1)
	for w := range uint64(ways) {
		s := &t.slots[at+w]
		m := s.meta.Load()
		if m&^7 == tag && s.key == [2]uint64{k.a, k.b} {
			return s, int(m & 7)
		}
		if m == 0 {
			break
		}
	}
	return nil, 0
}

func (c *cache) putShort(k key, n int, h uint64, ids []ID) {
	t := c.short.Load()
	at := h >> 8 & (uint64(len(t.slots)) - 1) &^ (ways - 1)
	for w := range uint64(ways) {
		s := &t.slots[at+w]
		if s.meta.Load() != 0 || !s.meta.CompareAndSwap(0, 1) {
			continue
		}
		s.key = [2]uint64{k.a, k.b}
		s.ids = 0
		for i, id := range ids {
			s.ids |= uint64(id) << (idBits * i)
		}
		s.meta.Store(h&^0xFF | uint64(n)<<3 | uint64(len(ids)))
		return
	}
	if int(t.missed.Add(1)) == len(t.slots)/4 {
		c.short.CompareAndSwap(t, &shortTable{slots: make([]slot, len(t.slots))})
	}
}
