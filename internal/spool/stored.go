package spool

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/turnpack/turnpack/internal/lean"
	"github.com/turnpack/turnpack/rollout"
)

// A stored row is its head, then its columns. Ids and log probabilities differ from token to
// token and are stored one by one. The other columns are long runs of one value. A row thus
// takes two or three bytes a token, where its columns take twenty.

// coder encodes values, or decodes them in the same order, so that one function describes the
// layout for both. Encoding does not modify the values, which others may read. The first error
// is kept in err. What is decoded was encoded by the same run.
type coder struct {
	b   []byte // encoded so far, or next to be decoded
	err error

	// When encoding, b is passed to store once it is longer than most.
	most  int
	store func([]byte) (empty []byte, err error)

	reads bool
}

// written passes b to store if it is long enough.
func (c *coder) written() {
	if len(c.b) <= c.most || c.store == nil {
		return
	}
	var err error
	if c.b, err = c.store(c.b); err != nil {
		c.err = cmp.Or(c.err, err)
	}
}

// length codes the length of a column, -1 for none, and makes the column to decode.
func length[T any](c *coder, v *[]T) {
	if !c.reads {
		n := 0
		if *v != nil {
			n = len(*v) + 1
		}
		c.b = binary.AppendUvarint(c.b, uint64(n))
		return
	}
	x, k := binary.Uvarint(c.b)
	if c.b = c.b[k:]; x > 0 {
		*v = make([]T, x-1)
	}
}

// head codes all fields of a row except its columns.
func (c *coder) head(s *rollout.Sample) {
	var text []byte
	if !c.reads {
		bare := *s
		bare.IDs, bare.Source, bare.Flags, bare.Turn, bare.Logprob, bare.Version, bare.Weight, bare.Credit = nil, nil, nil, nil, nil, nil, nil, nil
		var err error
		text, err = lean.Append(nil, &bare)
		c.err = cmp.Or(c.err, err)
	}
	length(c, &text)
	if !c.reads {
		c.b = append(c.b, text...)
		return
	}
	c.err = lean.Read(c.b[:len(text)], s)
	c.b = c.b[len(text):]
}

// row codes a row.
func (c *coder) row(row *Row) {
	q := &row.Sequence
	c.head(&row.Sample)
	varints(c, &q.IDs)
	c.floats(&q.Logprob)
	varints(c, &row.Lens)
	varints(c, &row.Tokens)
	c.floats(&row.Logprobs)
	asBits, asInt := func(v int32) uint32 { return uint32(v) }, func(v uint32) int32 { return int32(v) }
	runs(c, &q.Flags, func(f rollout.Flag) uint32 { return uint32(f) }, func(v uint32) rollout.Flag { return rollout.Flag(v) })
	runs(c, &q.Source, asBits, asInt)
	runs(c, &q.Turn, asBits, asInt)
	runs(c, &q.Version, asBits, asInt)
	runs(c, &q.Weight, math.Float32bits, math.Float32frombits)
	runs(c, &q.Credit, math.Float32bits, math.Float32frombits)
}

// floats codes numbers one by one.
func (c *coder) floats(v *[]float32) {
	length(c, v)
	for i := range *v {
		if !c.reads {
			c.b = binary.LittleEndian.AppendUint32(c.b, math.Float32bits((*v)[i]))
			c.written()
			continue
		}
		(*v)[i], c.b = math.Float32frombits(binary.LittleEndian.Uint32(c.b)), c.b[4:]
	}
}

// varints codes numbers one by one.
func varints[T ~int32](c *coder, v *[]T) {
	length(c, v)
	for i := range *v {
		if !c.reads {
			c.b = binary.AppendUvarint(c.b, uint64(uint32((*v)[i])))
			c.written()
			continue
		}
		x, size := binary.Uvarint(c.b)
		(*v)[i], c.b = T(uint32(x)), c.b[size:]
	}
}

// runs codes a column, each run as its length and the bits of its value, so that 0 and -0 stay
// distinct.
func runs[T any](c *coder, v *[]T, bits func(T) uint32, of func(uint32) T) {
	length(c, v)
	if !c.reads {
		for column, i := *v, 0; i < len(column); {
			x, from := bits(column[i]), i
			for i++; i < len(column) && bits(column[i]) == x; i++ {
			}
			c.b = binary.LittleEndian.AppendUint32(binary.AppendUvarint(c.b, uint64(i-from)), x)
			c.written()
		}
		return
	}
	for to := *v; len(to) > 0; {
		count, k := binary.Uvarint(c.b)
		x := of(binary.LittleEndian.Uint32(c.b[k:]))
		for i := range to[:count] {
			to[i] = x
		}
		to, c.b = to[count:], c.b[k+4:]
	}
}
