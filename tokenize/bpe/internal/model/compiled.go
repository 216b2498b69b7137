package model

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// Tables appends the vocabulary, the merges and the widths in the form that
// [ReadTables] takes: sections of a length (8 bytes) and little-endian elements.
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
// index in them is in range. It copies.
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
	for _, e := range v.table {
		if e == 0 {
			continue
		}
		if v.count++; int(e) > len(v.pos) || v.pos[e-1] == 0 {
			return errTables
		}
	}
	size := uint64(len(v.pos))
	for i, tag := range p.tags {
		if tag == 0 {
			continue
		}
		p.count++
		if s := &p.slots[i]; s.key>>32 >= size || uint64(uint32(s.key)) >= size || uint64(s.into) >= size || s.rank == noRank {
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
	return append(dst, bytesOf(t)...)
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
	*t = make([]T, n)
	copy(bytesOf(*t), d)
	*data = d[len(bytesOf(*t)):]
	return true
}
