package model

import "encoding/binary"

// Splitter cuts text into pieces.
type Splitter interface {
	Next(s []byte, i int) int
}

// AppendPieces appends the ids of the pieces of s from i up to the first piece
// boundary at or behind end, and returns that boundary.
func (m *Model) AppendPieces(dst []ID, s []byte, i, end int, sp Splitter) ([]ID, int) {
	t := m.cache.short.Load()
	mask := uint64(len(t.slots)-1) &^ (ways - 1)
	for i < end {
		j := sp.Next(s, i)
		n := j - i
		if n > maxShortKey || i+maxShortKey > len(s) {
			dst = m.AppendRaw(dst, s, i, j)
			i = j
			continue
		}
		var k key
		if n <= 8 {
			k.a = binary.LittleEndian.Uint64(s[i:]) & lowMask[n]
		} else {
			k.a = binary.LittleEndian.Uint64(s[i:])
			k.b = binary.LittleEndian.Uint64(s[i+8:]) & lowMask[n-8]
		}
		h := shortHash(k, n)
		e := &t.slots[h>>8&mask&uint64(len(t.slots)-1)]
		meta := e.meta.Load()
		if meta&^7 != h&^0xFF|uint64(n)<<3 || e.key[0] != k.a || e.key[1] != k.b {
			dst = m.AppendRaw(dst, s, i, j)
			i = j
			continue
		}
		x := e.ids
		if l := len(dst); cap(dst)-l >= maxShortIDs {
			// three stores and a cut cost less than a branch on the number
			d := dst[:l+maxShortIDs]
			d[l] = ID(x & (1<<idBits - 1))
			d[l+1] = ID(x >> idBits & (1<<idBits - 1))
			d[l+2] = ID(x >> (2 * idBits) & (1<<idBits - 1))
			dst = d[:l+int(meta&7)]
		} else {
			for range meta & 7 {
				dst = append(dst, ID(x&(1<<idBits-1)))
				x >>= idBits
			}
		}
		i = j
	}
	return dst, i
}
