package model

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// Tables appends the vocabulary, the merges and the widths in the form that
// [ReadTables] takes: sections of a length (8 bytes) and little-endian elements,
// filled up to 8 bytes. len(dst) must be a multiple of 8.
func (m *Model) Tables(dst []byte) []byte {
	dst = appendTable(dst, m.Vocab.arena)
	dst = appendTable(dst, m.Vocab.pos)
	dst = appendTable(dst, m.Vocab.table)
	dst = appendTable(dst, m.Pairs.tags)
	dst = appendTable(dst, m.Pairs.slots)
	return appendTable(dst, m.width)
}

// errTables says what is wrong with compiled tables without naming each way.
var errTables = errors.New("the tables contradict each other")

// ReadTables fills the vocabulary, merges and widths, and checks that every
// index in them is in range. The tables stay where they are: data, which must be
// aligned to 8 bytes, belongs to m from now on.
func (m *Model) ReadTables(data []byte) error {
	v, p := &Vocab{}, &Pairs{}
	var width []int32
	ok := readTable(&data, &v.arena) && readTable(&data, &v.pos) && readTable(&data, &v.table) &&
		readTable(&data, &p.tags) && readTable(&data, &p.slots) && readTable(&data, &width)
	if !ok || len(data) != 0 || len(v.pos) > MaxID || len(width) != len(v.pos) || len(p.tags) != len(p.slots) || !power(len(v.table)) || !power(len(p.tags)) {
		return errTables
	}
	for i, x := range v.pos {
		begin, n := x>>32, uint64(uint32(x))
		if n > 0 && begin+n-1 > uint64(len(v.arena)) || width[i] < 0 || n > 0 && uint64(width[i]) > n {
			return errTables
		}
	}
	// an entry whose id has no spelling equals no spelling, and does no harm
	last := uint32(0)
	for _, e := range v.table {
		v.count += int((e | -e) >> 31) // 1 for any but 0
		last = max(last, e)
	}
	if uint64(last) > uint64(len(v.pos)) {
		return errTables
	}
	size := uint64(len(v.pos))
	for i, tag := range p.tags {
		if tag == 0 {
			continue
		}
		p.count++
		if s := &p.slots[i]; max(s.key>>32, uint64(uint32(s.key)), uint64(s.into)) >= size || s.rank == noRank {
			return errTables
		}
	}
	// a look-up ends at a free slot
	if v.count >= len(v.table) || p.count >= len(p.tags) {
		return errTables
	}
	m.Vocab, m.Pairs, m.width = v, p, width
	return nil
}

func power(n int) bool { return n > 0 && n&(n-1) == 0 }

// bytesOf views a table as bytes. Compiled tables are little-endian; other
// machines refuse them at the magic number.
func bytesOf[T any](t []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t))), len(t)*int(unsafe.Sizeof(zero)))
}

func appendTable[T any](dst []byte, t []T) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(t)))
	dst = append(dst, bytesOf(t)...)
	return append(dst, make([]byte, -len(dst)&7)...)
}

func readTable[T any](data *[]byte, t *[]T) bool {
	var zero T
	d := *data
	if len(d) < 8 {
		return false
	}
	n := binary.LittleEndian.Uint64(d)
	d = d[8:]
	if n > uint64(len(d))/uint64(unsafe.Sizeof(zero)) {
		return false
	}
	*t = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(d))), n)
	size := len(bytesOf(*t))
	size += -size & 7
	if size > len(d) {
		return false
	}
	*data = d[size:]
	return true
}

// Aligned returns data, or a copy of it, at an address that suits [ReadTables].
func Aligned(data []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))&7 == 0 {
		return data
	}
	words := make([]uint64, (len(data)+7)/8)
	copied := bytesOf(words)[:len(data)]
	copy(copied, data)
	return copied
}

// Checksum tells damage. Four sums that do not wait for each other run at the
// speed of memory.
func Checksum(b []byte) uint64 {
	const lane = 16
	sums := [4]uint64{mix1, mix2, mix1 ^ mix2, uint64(len(b))}
	for ; len(b) >= 4*lane; b = b[4*lane:] {
		c := (*[4 * lane]byte)(b)
		sums[0] = mix(binary.LittleEndian.Uint64(c[0:])^mix1, binary.LittleEndian.Uint64(c[8:])^sums[0])
		sums[1] = mix(binary.LittleEndian.Uint64(c[16:])^mix1, binary.LittleEndian.Uint64(c[24:])^sums[1])
		sums[2] = mix(binary.LittleEndian.Uint64(c[32:])^mix1, binary.LittleEndian.Uint64(c[40:])^sums[2])
		sums[3] = mix(binary.LittleEndian.Uint64(c[48:])^mix1, binary.LittleEndian.Uint64(c[56:])^sums[3])
	}
	h := hashBytes(b)
	for _, s := range sums {
		h = mix(h^s, mix2) + s
	}
	return h
}
