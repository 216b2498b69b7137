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

// A batch reads the nodes and buffers of a record batch in column order.
type batch struct {
	rows                   int
	body                   []byte
	nodes, buffers, extras vector
	node, buffer, extra    int
	packed                 bool
	codec                  codec
	unpack                 *decompressor
	left                   int64 // bytes that buffers may still decompress to
	most                   int64 // greatest number of rows or values
}

// batch returns the batch in the body of m, which t describes.
func (f *File) batch(m *message, t table) (*batch, error) {
	body, err := f.read(m.body, m.size)
	if err != nil {
		return nil, err
	}
	compression := t.table(3)
	b := &batch{rows: int(t.number(0, 8)), body: body, nodes: t.vector(1, 16), buffers: t.vector(2, 16), extras: t.vector(4, 8),
		packed: compression.at != 0, codec: codec(compression.number(0, 1)), unpack: &f.unpack, left: pqread.MostBytes(f.size), most: pqread.MostValues(f.size)}
	if b.rows < 0 || int64(b.rows) > b.most {
		return nil, fmt.Errorf("a record batch of %d rows, at most %d are read from a file of %d bytes", b.rows, b.most, f.size)
	}
	return b, t.err
}

// columns decodes the columns with the given names and skips the others.
func (b *batch) columns(fields []field, names []string) ([]*pqread.Chunk, error) {
	out := make([]*pqread.Chunk, len(names))
	for k := range fields {
		f := &fields[k]
		i := slices.Index(names, f.name)
		if i < 0 || out[i] != nil || f.typ.Other != "" {
			if err := b.skip(*f); err != nil {
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
	if f.id == typeTextView || f.id == typeBytesView {
		more, err := b.moreBuffers()
		if err != nil {
			return err
		}
		b.buffer += more
	}
	for _, c := range f.children {
		if err := b.skip(c); err != nil {
			return err
		}
	}
	return nil
}

// nextNode returns the length and the null count of the next column.
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
		if out, err = b.decompress(out); err != nil {
			return nil, err
		}
	}
	if len(out) < need {
		return nil, errShort
	}
	return out, nil
}

// decompress decompresses a buffer. It starts with its decompressed size, or −1 if it is stored
// uncompressed.
func (b *batch) decompress(data []byte) ([]byte, error) {
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

// validity returns the validity bitmap of n values, or nil if none is null.
func (b *batch) validity(n, nulls int) ([]byte, error) {
	if nulls == 0 {
		_, err := b.nextBuffer(0)
		return nil, err
	}
	return b.nextBuffer((n + 7) / 8)
}

func bit(bitmap []byte, i int) bool { return bitmap == nil || bitmap[i/8]>>(i%8)&1 == 1 }

// column decodes a column into the form of a Parquet column.
func (b *batch) column(f *field) (*pqread.Chunk, error) {
	a, err := b.series(f)
	if err != nil {
		return nil, err
	}
	if a.n != b.rows {
		return nil, fmt.Errorf("it holds %d rows, its record batch %d", a.n, b.rows)
	}
	out := &pqread.Chunk{}
	if !f.typ.List {
		out.Nulls = make([]bool, a.n)
		for i := range out.Nulls {
			if out.Nulls[i] = !bit(a.valid, i); !out.Nulls[i] {
				a.appendTo(out, i)
			}
		}
		return out, nil
	}
	elements := a.kids[0]
	out.Lens = make([]int32, a.n)
	for i := range out.Lens {
		from, to := a.end(i), a.end(i+1)
		if !bit(a.valid, i) {
			if out.Lens[i] = -1; to > from {
				return nil, errors.New("a null list holds values")
			}
			continue
		}
		for v := from; v < to; v++ {
			if bit(elements.valid, v) {
				elements.appendTo(out, v)
				out.Lens[i]++
			} else {
				out.NullElements++
			}
		}
	}
	return out, nil
}

// appendTo appends value i of a column whose type is a Kind.
func (a *series) appendTo(out *pqread.Chunk, i int) {
	le := binary.LittleEndian
	switch a.f.typ.Kind {
	case Bool:
		out.Ints = append(out.Ints, int32(a.data[i/8]>>(i%8)&1))
	case Int8:
		out.Ints = append(out.Ints, int32(int8(a.data[i])))
	case Int32:
		out.Ints = append(out.Ints, int32(le.Uint32(a.data[4*i:])))
	case Int64:
		out.Longs = append(out.Longs, int64(le.Uint64(a.data[8*i:])))
	case Float32:
		out.Floats = append(out.Floats, math.Float32frombits(le.Uint32(a.data[4*i:])))
	case Text:
		out.Texts = append(out.Texts, string(a.text(i)))
	}
}
