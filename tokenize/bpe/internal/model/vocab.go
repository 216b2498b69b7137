// Package model implements byte pair encoding: the vocabulary, the merges, the merging of a piece and a cache of
// pieces.
package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/turnpack/turnpack/rollout"
)

// MaxID bounds token ids. A larger id in a file counts as damage, because tables indexed by id are allocated up to
// the largest.
const MaxID = 1 << 24

// Vocab maps spellings to ids and back. It is read-only after it has been filled.
type Vocab struct {
	arena []byte
	pos   []uint64 // by id: offset<<32 | length+1, 0 if there is none
	table []uint32 // open addressing: bits of the spelling's hash, then id+1
	count int
}

const (
	mix1 = 0x9E3779B97F4A7C15
	mix2 = 0xD6E8FEB86659FD93

	idBits = 25 // of a slot of the table
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
	if n := len(b); n >= 4 {
		w = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	} else if n > 0 {
		w = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return mix(h^w, mix1)
}

// table returns n zero values in pages that have been written. A page that is read first takes two faults, and the
// second one stops the other threads.
func table[T any](n int) []T {
	var zero T
	t := make([]T, n)
	for i := 0; i < n; i += 64 { // less than a page for all T used here
		t[i] = zero
	}
	return t
}

// NewVocab returns an empty vocabulary with room for n entries and the given number of bytes in total.
func NewVocab(n, bytes int) *Vocab {
	size := 1 << max(4, bits.Len(uint(n+n/2)))
	return &Vocab{arena: make([]byte, 0, bytes), pos: make([]uint64, 0, n), table: table[uint32](size)}
}

// Add sets the id of a spelling. An existing spelling moves to the new id, as in the reference, whose vocabulary is a
// map.
func (v *Vocab) Add(spelling []byte, id int) error {
	if id < 0 || id >= MaxID {
		return fmt.Errorf("token id %d is outside [0, %d)", id, MaxID)
	}
	if v.count*3 >= len(v.table)*2 {
		v.grow()
	}
	for id >= len(v.pos) {
		v.pos = append(v.pos, 0)
	}
	slot, tag := v.find(spelling)
	if v.table[slot] == 0 {
		v.count++
	}
	v.table[slot] = tag | uint32(id+1)
	v.pos[id] = uint64(len(v.arena))<<32 | uint64(len(spelling)+1)
	v.arena = append(v.arena, spelling...)
	return nil
}

func (v *Vocab) grow() {
	old := v.table
	v.table = table[uint32](2 * len(old))
	for _, e := range old {
		if e != 0 {
			b, _ := v.Bytes(entryID(e))
			slot, tag := v.find(b)
			v.table[slot] = tag | uint32(entryID(e)+1)
		}
	}
}

// entryID returns the id in a slot, −1 if it is free.
func entryID(e uint32) int { return int(e&(1<<idBits-1)) - 1 }

// find returns the slot of a spelling, or the free slot for it, and the bits of its hash that a slot holds.
func (v *Vocab) find(spelling []byte) (slot int, tag uint32) {
	mask := uint64(len(v.table) - 1)
	h := hashBytes(spelling)
	tag = uint32(h>>(32+idBits)) << idBits
	for i := h & mask; ; i = (i + 1) & mask {
		e := v.table[i]
		if e == 0 {
			return int(i), tag
		}
		if e>>idBits != tag>>idBits {
			continue // rejects most collisions without loading the spelling
		}
		p := v.pos[entryID(e)]
		if int(uint32(p))-1 == len(spelling) && bytes.Equal(v.arena[p>>32:][:len(spelling)], spelling) {
			return int(i), tag
		}
	}
}

// Find returns the id of a spelling, −1 if there is none.
func (v *Vocab) Find(spelling []byte) int32 {
	slot, _ := v.find(spelling)
	return int32(entryID(v.table[slot]))
}

// FindAll is Find for up to Many spellings at once, with overlapping memory accesses.
func (v *Vocab) FindAll(ids []int32, spellings [][]byte) {
	mask := uint64(len(v.table) - 1)
	var tags [Many]uint32
	var pos [Many]uint64
	for i, s := range spellings {
		h := hashBytes(s)
		tags[i] = uint32(h>>(32+idBits))<<idBits ^ v.table[h&mask]
	}
	for i := range spellings {
		ids[i] = int32(entryID(tags[i]))
		if tags[i]>>idBits == 0 && ids[i] >= 0 {
			pos[i] = v.pos[ids[i]]
		}
	}
	for i, s := range spellings {
		if p := pos[i]; int(uint32(p))-1 != len(s) || !bytes.Equal(v.arena[p>>32:][:len(s)], s) {
			ids[i] = v.Find(s)
		}
	}
}

// Many is the maximum number of spellings in a call of FindAll.
const Many = 128

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

// ID is the id type of results.
type ID = rollout.TokenID
