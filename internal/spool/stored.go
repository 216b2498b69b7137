package spool

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"

	"github.com/turnpack/turnpack/internal/lean"
	"github.com/turnpack/turnpack/rollout"
)

// A stored row is its head, then its columns. Ids and log probabilities differ from token to
// token and are stored one by one. The other columns are long runs of one value. A row thus
// takes two or three bytes a token, where its columns take twenty.

// coder encodes values, or decodes them in the same order, so that one function describes the
// layout for both. Encoding does not modify the values, which others may read. The first error
// is kept in err; values decoded after it are invalid.
type coder struct {
	b   []byte // encoded so far, or next to be decoded
	err error

	// When encoding, b is passed to store once it is longer than most.
	most  int
	store func([]byte) (empty []byte, err error)

	reads bool
}

var errStored = errors.New("the stored row is damaged")

// damaged records that the bytes are not a valid row.
func (c *coder) damaged() { c.err = cmp.Or(c.err, errStored) }

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

// length codes the length of a column, -1 for none. If entries are stored one by one, each in least
// bytes or more, it makes the column to decode, which the bytes left bound.
func length[T any](c *coder, v *[]T, least int) int {
	if !c.reads {
		n := 0
		if *v != nil {
			n = len(*v) + 1
		}
		c.b = binary.AppendUvarint(c.b, uint64(n))
		return n - 1
	}
	x, k := binary.Uvarint(c.b)
	if k <= 0 || c.err != nil || least > 0 && x > 1+uint64(len(c.b))/uint64(least) {
		c.damaged()
		return -1
	}
	if c.b = c.b[k:]; x > 0 && least > 0 {
		*v = make([]T, x-1)
	}
	return int(x) - 1
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
	n := length(c, &text, 1)
	if !c.reads {
		c.b = append(c.b, text...)
		return
	}
	if c.err != nil || n < 0 || n > len(c.b) || lean.Read(c.b[:n], s) != nil {
		c.damaged()
		return
	}
	c.b = c.b[n:]
}

// row codes a row.
func (c *coder) row(row *Row) {
	q := &row.Sequence
	c.head(&row.Sample)
	varints(c, &q.IDs, 0, math.MaxUint32)
	c.floats(&q.Logprob)
	varints(c, &row.Lens, 1, math.MaxInt32)
	varints(c, &row.Tokens, 0, math.MaxUint32)
	c.floats(&row.Logprobs)
	asBits, asInt := func(v int32) uint32 { return uint32(v) }, func(v uint32) int32 { return int32(v) }
	entries := len(q.IDs)
	runs(c, &q.Flags, entries, func(f rollout.Flag) uint32 { return uint32(f) }, func(v uint32) rollout.Flag { return rollout.Flag(v) })
	runs(c, &q.Source, entries, asBits, asInt)
	runs(c, &q.Turn, entries, asBits, asInt)
	runs(c, &q.Version, entries, asBits, asInt)
	runs(c, &q.Weight, entries, math.Float32bits, math.Float32frombits)
	runs(c, &q.Credit, entries, math.Float32bits, math.Float32frombits)
}

// read decodes a row that takes all bytes left.
func (c *coder) read() (row Row, err error) {
	if c.row(&row); c.err == nil && len(c.b) > 0 {
		c.damaged()
	}
	if c.err != nil {
		return Row{}, c.err
	}
	return row, nil
}

// floats codes numbers one by one.
func (c *coder) floats(v *[]float32) {
	length(c, v, 4)
	for i := range *v {
		if !c.reads {
			c.b = binary.LittleEndian.AppendUint32(c.b, math.Float32bits((*v)[i]))
			c.written()
			continue
		}
		if len(c.b) < 4 {
			return
		}
		(*v)[i], c.b = math.Float32frombits(binary.LittleEndian.Uint32(c.b)), c.b[4:]
	}
}

// varints codes numbers between least and most one by one.
func varints[T ~int32](c *coder, v *[]T, least, most uint64) {
	length(c, v, 1)
	for i := range *v {
		if !c.reads {
			c.b = binary.AppendUvarint(c.b, uint64(uint32((*v)[i])))
			c.written()
			continue
		}
		x, size := binary.Uvarint(c.b)
		if size <= 0 || x < least || x > most {
			c.damaged()
			return
		}
		(*v)[i], c.b = T(uint32(x)), c.b[size:]
	}
}

// runs codes a column of n entries, or none, each run as its length and the bits of its value, so
// that 0 and -0 stay distinct.
func runs[T any](c *coder, v *[]T, n int, bits func(T) uint32, of func(uint32) T) {
	there := length(c, v, 0)
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
	if c.err != nil || there < 0 {
		return
	}
	if there != n {
		c.damaged()
		return
	}
	*v = make([]T, 0, n)
	for len(*v) < n {
		count, k := binary.Uvarint(c.b)
		if k <= 0 || count == 0 || count > uint64(n-len(*v)) || len(c.b) < k+4 {
			c.damaged()
			return
		}
		*v = appendRun(*v, of(binary.LittleEndian.Uint32(c.b[k:])), int(count))
		c.b = c.b[k+4:]
	}
}
