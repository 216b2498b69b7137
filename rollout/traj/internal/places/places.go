// Package places remembers what each rollout of a file took, its id and its place in its
// group, so that a later reading can pass over its record. A million take some twenty
// megabytes.
package places

import (
	"encoding/binary"
	"math"

	"github.com/turnpack/turnpack/internal/packed"
)

// List are the rollouts of a file in their order, by their line, which is 0 where lines are
// no records. The zero value is empty.
type List struct {
	Last   int    // the line of the last rollout
	Packed []byte // by Pack

	places []byte
	line   int // of the rollout read before
}

// Add adds a rollout of a line no earlier than the last, or with nil says that the line
// must be read again.
func (f *List) Add(line int, m *Place) {
	f.places = m.append(f.places, line-f.Last)
	f.Last = line
}

// Of gives the rollouts of a line, nil for that it must be read again, and forgets all up to
// there: lines are asked for in their order.
func (f *List) Of(line int) (list []*Place) {
	for m, at, ok := f.next(line); ok; m, at, ok = f.next(line) {
		if at == line {
			list = append(list, m)
		}
	}
	return list
}

// Pack compresses the list into Packed.
func (f *List) Pack() { f.Packed, f.places = packed.Bytes(f.places), nil }

// Unpack is for a list that came as JSON; false says that it is damaged.
func (f *List) Unpack() (ok bool) {
	f.places, ok = packed.Read(f.Packed)
	f.Packed = nil
	return ok
}

// Place is what a rollout changes in a Reader for those after it.
type Place struct {
	ID    string
	Group string
	Index int
	Name  string // of its group in its data set, with Task
	Task  [16]byte
}

// What an entry is, in List.places.
const (
	readAgain = iota // nothing but the line: its record must be read again
	readOne
	readTask // with Name and Task
)

// append writes m as the rollout of a line so many after the one before, nil as a record
// that must be read again.
func (m *Place) append(dst []byte, after int) []byte {
	dst = binary.AppendUvarint(dst, uint64(after))
	text := func(s string) { dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...) }
	if m == nil {
		return append(dst, readAgain)
	}
	kind := byte(readOne)
	if m.Task != [16]byte{} {
		kind = readTask
	}
	dst = append(dst, kind)
	text(m.ID)
	text(m.Group)
	if dst = binary.AppendVarint(dst, int64(m.Index)); kind == readTask {
		text(m.Name)
		dst = append(dst, m.Task[:]...)
	}
	return dst
}

// next reads what append wrote, where it is of a line up to the one given, and forgets it;
// ok is false where there is none, or it is damaged.
func (f *List) next(upTo int) (m *Place, line int, ok bool) {
	after, n := binary.Uvarint(f.places)
	if n <= 0 || after > math.MaxInt32 || f.line+int(after) > upTo || len(f.places) == n {
		return nil, 0, false
	}
	line = f.line + int(after)
	kind, b := f.places[n], f.places[n+1:]
	damaged := kind > readTask
	take := func(n uint64) []byte {
		if damaged = damaged || n > uint64(len(b)); damaged {
			return nil
		}
		out := b[:n]
		b = b[n:]
		return out
	}
	text := func() string {
		size, n := binary.Uvarint(b)
		damaged = damaged || n <= 0
		take(uint64(max(n, 0)))
		return string(take(size))
	}
	if kind != readAgain {
		m = &Place{ID: text(), Group: text()}
		index, n := binary.Varint(b)
		m.Index, damaged = int(index), damaged || n <= 0
		if take(uint64(max(n, 0))); kind == readTask {
			m.Name = text()
			copy(m.Task[:], take(16))
		}
	}
	if damaged {
		f.places = nil
		return nil, 0, false
	}
	f.places, f.line = b, line
	return m, line, true
}
