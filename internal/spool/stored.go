package spool

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// A row that waits is kept as bytes: its head as JSON, then its columns. Ids and
// log probabilities differ from token to token and are written out; the other
// columns are long runs of one value, so a row takes little more than four bytes
// a token instead of the twenty of its columns.

// storedHead is a row without its columns, and which of them it has.
type storedHead struct {
	Row                              rollout.Sample
	Len                              int
	Logprob, Version, Weight, Credit bool
}

// appendRow appends row as loadRow reads it.
func appendRow(dst []byte, row *rollout.Sample) ([]byte, error) {
	bare := *row
	bare.Sequence = rollout.Sequence{Identity: row.Identity}
	head, err := json.Marshal(storedHead{bare, row.Len(), row.Logprob != nil, row.Version != nil, row.Weight != nil, row.Credit != nil})
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, len(head)+4*(len(row.IDs)+len(row.Logprob))+storedSlack)
	dst = append(binary.AppendUvarint(dst, uint64(len(head))), head...)
	for _, id := range row.IDs {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
	}
	for _, lp := range row.Logprob {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(lp))
	}
	dst = appendRuns(dst, row.Flags, func(f rollout.Flag) uint32 { return uint32(f) })
	for _, c := range [][]int32{row.Source, row.Turn, row.Version} {
		dst = appendRuns(dst, c, func(v int32) uint32 { return uint32(v) })
	}
	for _, c := range [][]float32{row.Weight, row.Credit} {
		dst = appendRuns(dst, c, math.Float32bits)
	}
	return dst, nil
}

// appendRuns appends each run of one value as its length and the value's bits,
// which tell zero from its negative.
func appendRuns[T any](dst []byte, column []T, bits func(T) uint32) []byte {
	for i := 0; i < len(column); {
		v, from := bits(column[i]), i
		for i++; i < len(column) && bits(column[i]) == v; i++ {
		}
		dst = binary.LittleEndian.AppendUint32(binary.AppendUvarint(dst, uint64(i-from)), v)
	}
	return dst
}

// storedSlack is room for the runs of a row of ordinary length.
const storedSlack = 4 << 10

var errStored = errors.New("the stored row is damaged")

// loadRow reads what appendRow wrote.
func loadRow(b []byte) (rollout.Sample, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return rollout.Sample{}, errStored
	}
	var h storedHead
	if err := json.Unmarshal(b[n:n+int(size)], &h); err != nil {
		return rollout.Sample{}, err
	}
	if string(h.Row.Metadata) == "null" { // as JSON has none
		h.Row.Metadata = nil
	}
	r := storedColumns{rest: b[n+int(size):], len: h.Len}
	asInt := func(v uint32) int32 { return int32(v) }
	q := &h.Row.Sequence
	q.IDs = values(&r, true, asInt)
	q.Logprob = values(&r, h.Logprob, math.Float32frombits)
	q.Flags = runs(&r, true, func(v uint32) rollout.Flag { return rollout.Flag(v) })
	q.Source = runs(&r, true, asInt)
	q.Turn = runs(&r, true, asInt)
	q.Version = runs(&r, h.Version, asInt)
	q.Weight = runs(&r, h.Weight, math.Float32frombits)
	q.Credit = runs(&r, h.Credit, math.Float32frombits)
	if r.damaged || len(r.rest) > 0 {
		return rollout.Sample{}, errStored
	}
	return h.Row, nil
}

// storedColumns are the bytes of columns that are still to be read.
type storedColumns struct {
	rest    []byte
	len     int
	damaged bool
}

// values reads a column that is written out, nil when it is not there.
func values[T any](r *storedColumns, there bool, of func(uint32) T) []T {
	if !there || r.damaged {
		return nil
	}
	if r.len < 0 || r.len > len(r.rest)/4 {
		r.damaged = true
		return nil
	}
	out := make([]T, r.len)
	for i := range out {
		out[i] = of(binary.LittleEndian.Uint32(r.rest[4*i:]))
	}
	r.rest = r.rest[4*r.len:]
	return out
}

// runs reads a column of runs, nil when it is not there.
func runs[T any](r *storedColumns, there bool, of func(uint32) T) []T {
	if !there || r.damaged {
		return nil
	}
	out := make([]T, r.len)
	for left := out; len(left) > 0; {
		count, n := binary.Uvarint(r.rest)
		if n <= 0 || count == 0 || count > uint64(len(left)) || len(r.rest) < n+4 {
			r.damaged = true
			return nil
		}
		v := of(binary.LittleEndian.Uint32(r.rest[n:]))
		for i := range left[:count] {
			left[i] = v
		}
		left, r.rest = left[count:], r.rest[n+4:]
	}
	return out
}
