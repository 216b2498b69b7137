package arrowfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/pqread"
)

var errShort = errors.New("a buffer ends before its values do")

// A batch walks the nodes and buffers of a record batch in the order of its
// columns.
type batch struct {
	rows                   int
	body                   []byte
	nodes, buffers, extras vector
	node, buffer, extra    int
	packed                 bool
	codec                  codec
	unpack                 *decompressor
	left                   int64 // bytes that buffers may still unfold into
	most                   int64 // rows or values
}

func newBatch(t table, body []byte, fileSize int64, unpack *decompressor) (*batch, error) {
	compression := t.table(3)
	b := &batch{rows: int(t.number(0, 8)), body: body, nodes: t.vector(1, 16), buffers: t.vector(2, 16), extras: t.vector(4, 8),
		packed: compression.at != 0, codec: codec(compression.number(0, 1)), unpack: unpack, left: pqread.MostBytes(fileSize), most: pqread.MostValues(fileSize)}
	if b.rows < 0 || int64(b.rows) > b.most {
		return nil, fmt.Errorf("a record batch of %d rows, at most %d are read from a file of %d bytes", b.rows, b.most, fileSize)
	}
	return b, t.err
}

// columns decodes the named fields and passes over the others.
func (b *batch) columns(fields []field, names []string) ([]*pqread.Chunk, error) {
	out := make([]*pqread.Chunk, len(names))
	for _, f := range fields {
		i := slices.Index(names, f.name)
		if i < 0 || out[i] != nil || f.typ.Other != "" {
			if err := b.skip(f); err != nil {
				return nil, err
			}
			continue
		}
		var err error
		if out[i], err = b.column(f); err != nil {
			return nil, fmt.Errorf("column %s: %w", f.name, err)
		}
	}
	return out, nil
}

func (b *batch) skip(f field) error {
	b.node++
	b.buffer += f.buffers
	if f.view {
		if b.extra >= b.extras.n {
			return errShort
		}
		more := b.extras.int64(b.extra, 0)
		if b.extra++; more < 0 || more > int64(b.buffers.n) {
			return errShort
		}
		b.buffer += int(more)
	}
	for _, c := range f.children {
		if err := b.skip(c); err != nil {
			return err
		}
	}
	return nil
}

// nextNode returns the length and the number of nulls of the next column.
func (b *batch) nextNode() (length, nulls int, err error) {
	if b.node >= b.nodes.n {
		return 0, 0, errors.New("the record batch has fewer columns than the schema")
	}
	n, nulled := b.nodes.int64(b.node, 0), b.nodes.int64(b.node, 8)
	if b.node++; n < 0 || n > b.most || nulled < 0 || nulled > n {
		return 0, 0, fmt.Errorf("it says it holds %d values, %d of them null", n, nulled)
	}
	return int(n), int(nulled), nil
}

// nextBuffer returns the next buffer, which must hold at least need bytes.
func (b *batch) nextBuffer(need int) ([]byte, error) {
	if b.buffer >= b.buffers.n {
		return nil, errors.New("the record batch has fewer buffers than the schema")
	}
	at, n := b.buffers.int64(b.buffer, 0), b.buffers.int64(b.buffer, 8)
	b.buffer++
	if at < 0 || n < 0 || at > int64(len(b.body)) || n > int64(len(b.body))-at {
		return nil, fmt.Errorf("a buffer of %d bytes at %d lies outside a body of %d", n, at, len(b.body))
	}
	out := b.body[at : at+n]
	if b.packed && n > 0 {
		var err error
		if out, err = b.unfold(out); err != nil {
			return nil, err
		}
	}
	if len(out) < need {
		return nil, errShort
	}
	return out, nil
}

// unfold decompresses a buffer, which begins with the size it unfolds into, or
// with −1 where compression did not pay.
func (b *batch) unfold(data []byte) ([]byte, error) {
	if len(data) < 8 {
		return nil, errShort
	}
	size := int64(binary.LittleEndian.Uint64(data))
	data = data[8:]
	if size == -1 {
		return data, nil
	}
	if size < 0 || size > b.left {
		return nil, fmt.Errorf("a buffer of %d bytes, more than a file of its size can be meant to hold", size)
	}
	b.left -= size
	out := make([]byte, size)
	if err := b.unpack.fill(out, data, b.codec); err != nil {
		return nil, fmt.Errorf("a buffer that says it holds %d bytes: %w", size, err)
	}
	return out, nil
}

// validity returns the bitmap of n values, nil when none is null.
func (b *batch) validity(n, nulls int) ([]byte, error) {
	if nulls == 0 {
		_, err := b.nextBuffer(0)
		return nil, err
	}
	return b.nextBuffer((n + 7) / 8)
}

func bit(bitmap []byte, i int) bool { return bitmap == nil || bitmap[i/8]>>(i%8)&1 == 1 }

// column decodes a column into the form that Parquet columns are read into.
func (b *batch) column(f field) (*pqread.Chunk, error) {
	n, nulls, err := b.nextNode()
	if err != nil {
		return nil, err
	}
	if n != b.rows {
		return nil, fmt.Errorf("it holds %d rows, its record batch %d", n, b.rows)
	}
	valid, err := b.validity(n, nulls)
	if err != nil {
		return nil, err
	}
	out := &pqread.Chunk{}
	if !f.typ.List {
		if err := b.values(out, f.typ.Kind, 0, n, valid); err != nil {
			return nil, err
		}
		out.Nulls = make([]bool, n)
		for i := range out.Nulls {
			out.Nulls[i] = !bit(valid, i)
		}
		return out, nil
	}
	offsets, err := b.offsets(n)
	if err != nil {
		return nil, err
	}
	out.Lens = make([]int32, n)
	for i := range out.Lens {
		out.Lens[i] = offsets.at(i+1) - offsets.at(i)
		if !bit(valid, i) {
			if out.Lens[i] != 0 {
				return nil, errors.New("a null list holds values")
			}
			out.Lens[i] = -1
		}
	}
	children, nulls, err := b.nextNode()
	if err != nil {
		return nil, err
	}
	from, to := int(offsets.at(0)), int(offsets.at(n))
	if to > children {
		return nil, fmt.Errorf("its lists end at value %d of %d", to, children)
	}
	if valid, err = b.validity(children, nulls); err != nil {
		return nil, err
	}
	if valid != nil {
		leaveOutNulls(out, offsets, valid)
	}
	return out, b.values(out, f.typ.Kind, from, to, valid)
}

// leaveOutNulls takes null elements out of the lengths of their lists.
func leaveOutNulls(out *pqread.Chunk, offsets offsets, valid []byte) {
	for i := range out.Lens {
		for v := offsets.at(i); v < offsets.at(i+1); v++ {
			if !bit(valid, int(v)) {
				out.Lens[i]--
				out.NullElements++
			}
		}
	}
}

// offsets are where values begin and the last one ends; they never fall.
type offsets []byte

func (o offsets) at(i int) int32 {
	if len(o) == 0 { // as some writers leave those of no values
		return 0
	}
	return int32(binary.LittleEndian.Uint32(o[4*i:]))
}

// offsets reads those of n values.
func (b *batch) offsets(n int) (offsets, error) {
	need := 4 * (n + 1)
	if n == 0 {
		need = 0
	}
	data, err := b.nextBuffer(need)
	if err != nil {
		return nil, err
	}
	o := offsets(data[:min(len(data), 4*(n+1))/4*4])
	for i, last := 0, int32(0); i <= n; i++ {
		if o.at(i) < last {
			return nil, errors.New("the offsets contradict each other")
		}
		last = o.at(i)
	}
	return o, nil
}

// values appends those of [from, to) that are there.
func (b *batch) values(out *pqread.Chunk, k Kind, from, to int, valid []byte) error {
	le := binary.LittleEndian
	var ends offsets
	need := map[Kind]int{Bool: (to + 7) / 8, Int8: to, Int32: 4 * to, Int64: 8 * to, Float32: 4 * to}[k]
	if k == Text {
		var err error
		if ends, err = b.offsets(to); err != nil {
			return err
		}
		need = int(ends.at(to))
	}
	data, err := b.nextBuffer(need)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if !bit(valid, i) {
			continue
		}
		switch k {
		case Bool:
			out.Bools = append(out.Bools, bit(data, i))
		case Int8:
			out.Ints = append(out.Ints, int32(int8(data[i])))
		case Int32:
			out.Ints = append(out.Ints, int32(le.Uint32(data[4*i:])))
		case Int64:
			out.Longs = append(out.Longs, int64(le.Uint64(data[8*i:])))
		case Float32:
			out.Floats = append(out.Floats, math.Float32frombits(le.Uint32(data[4*i:])))
		case Text:
			out.Texts = append(out.Texts, string(data[ends.at(i):ends.at(i+1)]))
		}
	}
	return nil
}
