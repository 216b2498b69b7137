package pq

import (
	"encoding/binary"
	"math/bits"
)

// A hybrid encodes values of one bit width in the RLE / bit-packing hybrid of the Parquet
// format.
type hybrid struct {
	out   []byte
	width int
	// literals are the values not yet written, to be bit-packed: never a run of eight or more,
	// and a multiple of eight if a run follows them.
	literals []uint32
}

// run appends n copies of value.
func (h *hybrid) run(value uint32, n int) {
	for n > 0 && len(h.literals)%8 != 0 {
		h.literals = append(h.literals, value)
		n--
	}
	if n < 8 {
		for ; n > 0; n-- {
			h.literals = append(h.literals, value)
		}
		return
	}
	h.flush()
	h.out = binary.AppendUvarint(h.out, uint64(n)<<1)
	for i := 0; i < h.width; i += 8 {
		h.out = append(h.out, byte(value>>i))
	}
}

// flush writes the pending literals, padding the last group of eight with zeros.
func (h *hybrid) flush() {
	if len(h.literals) == 0 {
		return
	}
	groups := (len(h.literals) + 7) / 8
	h.out = binary.AppendUvarint(h.out, uint64(groups)<<1|1)
	var acc uint64
	held := 0
	for i := range groups * 8 {
		var v uint32
		if i < len(h.literals) {
			v = h.literals[i]
		}
		acc |= uint64(v) << held
		held += h.width
		for held >= 8 {
			h.out = append(h.out, byte(acc))
			acc >>= 8
			held -= 8
		}
	}
	h.literals = h.literals[:0]
}

// widthOf returns the number of bits needed for values 0 … max.
func widthOf(max int) int { return bits.Len(uint(max)) }

// indexWidth returns the bit width of dictionary indices. It is at least 1, since readers
// disagree about width 0.
func indexWidth(values int) int { return max(1, widthOf(values-1)) }

// appendLevels appends one level stream after its four-byte length, as in version 1 data pages.
func appendLevels(dst []byte, emit func(*hybrid), max int) []byte {
	at := len(dst)
	h := hybrid{out: append(dst, 0, 0, 0, 0), width: widthOf(max)}
	emit(&h)
	h.flush()
	binary.LittleEndian.PutUint32(h.out[at:], uint32(len(h.out)-at-4))
	return h.out
}

// listLevels appends the repetition and definition levels of rows with the given lengths.
func listLevels(dst []byte, lens []int32, maxDef int) []byte {
	dst = appendLevels(dst, func(h *hybrid) {
		for _, n := range lens {
			h.run(0, 1)
			if n > 1 {
				h.run(1, int(n)-1)
			}
		}
	}, 1)
	return appendLevels(dst, func(h *hybrid) {
		level, n := 0, 0
		add := func(l, k int) {
			if l != level {
				h.run(uint32(level), n)
				level, n = l, 0
			}
			n += k
		}
		for _, k := range lens {
			switch {
			case k < 0:
				add(0, 1)
			case k == 0:
				add(maxDef-1, 1)
			default:
				add(maxDef, int(k))
			}
		}
		h.run(uint32(level), n)
	}, maxDef)
}

// nullLevels appends the definition levels of a nullable scalar column.
func nullLevels(dst []byte, nulls []bool) []byte {
	return appendLevels(dst, func(h *hybrid) {
		runs(nulls, func(null bool, n int) {
			level := uint32(1)
			if null {
				level = 0
			}
			h.run(level, n)
		})
	}, 1)
}

// runs calls give for each run of equal values in v, with its length.
func runs[T comparable](v []T, give func(value T, n int)) {
	for i := 0; i < len(v); {
		from := i
		for i < len(v) && v[i] == v[from] {
			i++
		}
		give(v[from], i-from)
	}
}
