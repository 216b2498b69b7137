// Package places stores the id and group index of each rollout in a file, so that a later
// reading can skip its record. A million rollouts take about twenty megabytes.
package places

import (
	"encoding/binary"
	"math"

	"github.com/turnpack/turnpack/internal/packed"
)

// List holds the places of the rollouts in a file, ordered by line; the line is 0 if lines
// are not records. The zero value is empty.
type List struct {
	Last   int    // the line of the last rollout
	Packed []byte // set by Pack

	places []byte
	line   int // line of the entry read last
}

// Add adds a rollout of a line, which must not be before the last one. A nil m means that
// the line must be read again.
func (f *List) Add(line int, m *Place) {
	f.places = m.append(f.places, line-f.Last)
	f.Last = line
}

// Of returns the rollouts of a line, nil for a record to read again, and drops all entries
// up to there: lines must be asked for in order.
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

// Unpack restores a list that was read from JSON, and returns false if it is damaged.
func (f *List) Unpack() (ok bool) {
	f.places, ok = packed.Read(f.Packed)
	f.Packed = nil
	return ok
}

// Place is what a rollout changes in the registry of a Reader for later rollouts.
type Place struct {
	ID    string
	Group string
	Index int
	Name  string // name of the group in its data set; set with Task
	Task  [16]byte
}

// The kinds of entries in List.places.
const (
	readAgain = iota // only a line: its record must be read again
	readOne
	readTask // with Name and Task
)

// append appends an entry for m, `after` lines after the previous entry. A nil m is a
// record that must be read again.
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

// next removes the next entry and returns it, if its line is at most upTo. ok is false if
// there is no such entry or the list is damaged.
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
