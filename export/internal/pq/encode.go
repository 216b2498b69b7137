package pq

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
)

// appendPlain appends values in PLAIN encoding.
func appendPlain(dst []byte, k Kind, v *Values) []byte {
	switch k {
	case Bool:
		return append(dst, Bits(v.Ints)...)
	case Int8, Int32:
		dst = slices.Grow(dst, 4*len(v.Ints)) // at once: a row may have millions of tokens
		for _, x := range v.Ints {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(x))
		}
	case Int64:
		for _, x := range v.Longs {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
		}
	case Float32:
		dst = slices.Grow(dst, 4*len(v.Floats))
		for _, x := range v.Floats {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
	case Text:
		for _, s := range v.Texts {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
			dst = append(dst, s...)
		}
	}
	return dst
}

// Bits packs booleans into bytes, the first in the lowest bit.
func Bits(values []int32) []byte {
	out := make([]byte, (len(values)+7)/8)
	for i, v := range values {
		out[i/8] |= byte(v) << (i % 8)
	}
	return out
}

// extend makes dst n bytes longer and returns it and the new part.
func extend(dst []byte, n int) (all, added []byte) {
	dst = slices.Grow(dst, n)[:len(dst)+n]
	return dst, dst[len(dst)-n:]
}

// appendSplit appends floats in BYTE_STREAM_SPLIT encoding: all first bytes, all second bytes,
// and so on.
func appendSplit(dst []byte, v []float32) []byte {
	n := len(v)
	dst, at := extend(dst, 4*n)
	b0, b1, b2, b3 := at[:n], at[n:2*n], at[2*n:3*n], at[3*n:4*n]
	for i, x := range v {
		u := math.Float32bits(x)
		b0[i], b1[i], b2[i], b3[i] = byte(u), byte(u>>8), byte(u>>16), byte(u>>24)
	}
	return dst
}

// A dictionary holds the distinct values of a chunk and the runs of their indices.
type dictionary struct {
	values Values // distinct values in order of first appearance
	n      int
	// values [start[i], start[i+1]) of the chunk all have the index run[i].
	run   []uint32
	start []int
}

// dictionaryOf returns the dictionary of the values, or nil if it would not save space.
func dictionaryOf(k Kind, v *Values) *dictionary {
	d := &dictionary{}
	ok := false
	switch k {
	case Int8, Int32:
		d.values.Ints, ok = index(d, v.Ints, v.Runs)
	case Int64:
		d.values.Longs, ok = index(d, v.Longs, v.Runs)
	case Float32:
		// Bit patterns keep −0 distinct from 0, and NaNs as they are.
		bits := arrow.Uint32Traits.CastFromBytes(arrow.Float32Traits.CastToBytes(v.Floats))
		var distinct []uint32
		distinct, ok = index(d, bits, v.Runs)
		for _, u := range distinct {
			d.values.Floats = append(d.values.Floats, math.Float32frombits(u))
		}
	case Text:
		d.values.Texts, ok = index(d, v.Texts, v.Runs)
	}
	if !ok {
		return nil
	}
	d.n = d.values.Len(k)
	return d
}

// index fills d with v, where runs counts how often each value occurs; nil runs means once.
func index[T comparable](d *dictionary, v []T, runs []int32) (distinct []T, ok bool) {
	seen := make(map[T]uint32)
	n := max(len(v), int(sum(runs)))
	limit := max(n/4, 16)
	for i, from := 0, 0; i < len(v); {
		j := i + 1
		for j < len(v) && v[j] == v[i] {
			j++
		}
		to := j
		if runs != nil {
			to = from + int(sum(runs[i:j]))
		}
		at, known := seen[v[i]]
		if !known {
			at = uint32(len(distinct))
			seen[v[i]] = at
			if distinct = append(distinct, v[i]); len(distinct) > limit {
				return nil, false
			}
		}
		d.run, d.start = append(d.run, at), append(d.start, from)
		i, from = j, to
	}
	d.start = append(d.start, n)
	return distinct, len(distinct) > 0
}

// appendIndices appends the indices of values [from, to).
func (d *dictionary) appendIndices(dst []byte, from, to int) []byte {
	width := indexWidth(d.n)
	h := hybrid{out: append(dst, byte(width)), width: width}
	first, exact := slices.BinarySearch(d.start, from)
	if !exact {
		first--
	}
	for i := first; i < len(d.run) && d.start[i] < to; i++ {
		h.run(d.run[i], min(d.start[i+1], to)-max(d.start[i], from))
	}
	h.flush()
	return h.out
}
