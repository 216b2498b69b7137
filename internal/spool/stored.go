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

	Runs             bool // the row is held as runs
	Tokens, Logprobs int  // that are stored
}

// appendRow appends row as loadRow reads it.
func appendRow(dst []byte, row *Row) ([]byte, error) {
	bare := row.Sample
	bare.Sequence = rollout.Sequence{Identity: row.Identity}
	ids, logprobs := row.IDs, row.Logprob
	if row.Lens != nil {
		ids, logprobs = row.Tokens, row.Logprobs
	}
	head, err := json.Marshal(storedHead{bare, row.Sample.Len(), row.Logprob != nil, row.Version != nil, row.Weight != nil, row.Credit != nil,
		row.Lens != nil, len(ids), len(logprobs)})
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, len(head)+4*(len(ids)+len(logprobs))+storedSlack)
	dst = append(binary.AppendUvarint(dst, uint64(len(head))), head...)
	for _, id := range ids {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(id))
	}
	for _, lp := range logprobs {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(lp))
	}
	for _, n := range row.Lens {
		dst = binary.AppendUvarint(dst, uint64(n))
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
func loadRow(b []byte) (Row, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return Row{}, errStored
	}
	var h storedHead
	if err := json.Unmarshal(b[n:n+int(size)], &h); err != nil {
		return Row{}, err
	}
	if string(h.Row.Metadata) == "null" { // as JSON has none
		h.Row.Metadata = nil
	}
	r := storedColumns{rest: b[n+int(size):], len: h.Len, damaged: !h.Runs && (h.Tokens != h.Len || h.Logprob && h.Logprobs != h.Len)}
	asInt := func(v uint32) int32 { return int32(v) }
	row := Row{Sample: h.Row}
	q := &row.Sequence
	q.IDs = values(&r, true, h.Tokens, asInt)
	q.Logprob = values(&r, h.Logprob, h.Logprobs, math.Float32frombits)
	if h.Runs {
		row.Tokens, row.Logprobs = q.IDs, q.Logprob
		if row.Lens = lengths(&r); !r.damaged {
			q.IDs = make([]rollout.TokenID, h.Len)
		}
		if !r.damaged && h.Logprob {
			q.Logprob = make([]float32, h.Len)
		}
	}
	q.Flags = runs(&r, true, func(v uint32) rollout.Flag { return rollout.Flag(v) })
	q.Source = runs(&r, true, asInt)
	q.Turn = runs(&r, true, asInt)
	q.Version = runs(&r, h.Version, asInt)
	q.Weight = runs(&r, h.Weight, math.Float32frombits)
	q.Credit = runs(&r, h.Credit, math.Float32frombits)
	if r.damaged || len(r.rest) > 0 {
		return Row{}, errStored
	}
	return row, nil
}

// storedColumns are the bytes of columns that are still to be read.
type storedColumns struct {
	rest    []byte
	len     int
	damaged bool
}

// values reads n values that are written out, nil when they are not there.
func values[T any](r *storedColumns, there bool, n int, of func(uint32) T) []T {
	if !there || r.damaged {
		return nil
	}
	if n < 0 || n > len(r.rest)/4 {
		r.damaged = true
		return nil
	}
	out := make([]T, n)
	for i := range out {
		out[i] = of(binary.LittleEndian.Uint32(r.rest[4*i:]))
	}
	r.rest = r.rest[4*n:]
	return out
}

// lengths reads those of runs.
func lengths(r *storedColumns) []int32 {
	if r.damaged || r.len < 0 || r.len > len(r.rest) {
		r.damaged = true
		return nil
	}
	out := make([]int32, r.len)
	for i := range out {
		k, n := binary.Uvarint(r.rest)
		if n <= 0 || k == 0 || k > math.MaxInt32 {
			r.damaged = true
			return nil
		}
		out[i], r.rest = int32(k), r.rest[n:]
	}
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
