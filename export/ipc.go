package export

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/internal/arrowfile"
	"github.com/turnpack/turnpack/internal/pqread"
)

// arrowEncoder writes row groups as Arrow record batches. The first one is preceded by the
// schema, which carries the file metadata.
type arrowEncoder struct {
	out    *pq.Counter
	cols   []column
	file   bool
	zstd   bool
	kv     func() []pqread.KV
	schema *arrow.Schema
	w      interface {
		Write(arrow.Record) error
		Close() error
	}
}

func (e *arrowEncoder) start() (err error) {
	if e.w != nil {
		return nil
	}
	e.schema = arrowSchema(e.cols, e.kv())
	o := []ipc.Option{ipc.WithSchema(e.schema)}
	if e.zstd {
		o = append(o, ipc.WithZstd())
	}
	if !e.file {
		e.w = ipc.NewWriter(e.out, o...)
		return nil
	}
	e.w, err = ipc.NewFileWriter(e.out, o...)
	return err
}

func (e *arrowEncoder) WriteRowGroup(rows int, values []pq.Values) error {
	if err := e.start(); err != nil {
		return err
	}
	cols := make([]arrow.Array, len(values))
	for i, c := range e.cols {
		cols[i] = array.MakeFromData(arrowData(c.Column, &values[i], rows, e.schema.Field(i).Type))
	}
	rec := array.NewRecord(e.schema, cols, int64(rows))
	defer rec.Release()
	if err := e.w.Write(rec); err != nil {
		return errors.Join(e.out.Err, err)
	}
	return e.out.Err
}

// Close ends the file. It ignores its argument: the metadata was written with the schema.
func (e *arrowEncoder) Close([]pqread.KV) error {
	if err := e.start(); err != nil {
		return err
	}
	return errors.Join(e.w.Close(), e.out.Err)
}

func (e *arrowEncoder) Written() int64 { return e.out.N }

// arrowData wraps column values as Arrow buffers. Numbers that are not run-length encoded are
// not copied.
func arrowData(c pq.Column, v *pq.Values, rows int, t arrow.DataType) *array.Data {
	if !c.List {
		nulls, valid := validity(rows, func(i int) bool { return c.Nullable && v.Nulls[i] })
		return array.NewData(t, rows, append([]*memory.Buffer{valid}, valueBuffers(c.Kind, v)...), nil, nulls, 0)
	}
	nulls, valid := validity(rows, func(i int) bool { return v.Lens[i] < 0 })
	offsets := make([]int32, rows+1)
	for i, n := range v.Lens {
		offsets[i+1] = offsets[i] + max(0, n)
	}
	n := v.Len(c.Kind)
	child := array.NewData(arrowType(c.Kind), n, append([]*memory.Buffer{nil}, valueBuffers(c.Kind, v)...), nil, 0, 0)
	return array.NewData(t, rows, []*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets))}, []arrow.ArrayData{child}, nulls, 0)
}

// validity returns the number of null rows and the validity bitmap, which is nil if no row is
// null.
func validity(rows int, null func(int) bool) (nulls int, bitmap *memory.Buffer) {
	bits := make([]byte, (rows+7)/8)
	for i := range rows {
		if null(i) {
			nulls++
			continue
		}
		bits[i/8] |= 1 << (i % 8)
	}
	if nulls == 0 {
		return 0, nil
	}
	return nulls, memory.NewBufferBytes(bits)
}

func valueBuffers(k pq.Kind, v *pq.Values) []*memory.Buffer {
	one := func(b []byte) []*memory.Buffer { return []*memory.Buffer{memory.NewBufferBytes(b)} }
	switch k {
	case pq.Bool:
		return one(pq.Bits(v.Ints))
	case pq.Int8:
		small := make([]byte, len(v.Ints))
		for i, x := range v.Ints {
			small[i] = byte(x)
		}
		return one(pq.Spread(small, v.Runs))
	case pq.Int32:
		return one(arrow.Int32Traits.CastToBytes(pq.Spread(v.Ints, v.Runs)))
	case pq.Int64:
		return one(arrow.Int64Traits.CastToBytes(v.Longs))
	case pq.Float32:
		return one(arrow.Float32Traits.CastToBytes(pq.Spread(v.Floats, v.Runs)))
	}
	offsets := make([]int32, len(v.Texts)+1)
	var data []byte
	for i, s := range v.Texts {
		data = append(data, s...)
		offsets[i+1] = int32(len(data))
	}
	return append(one(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(data))
}

// arrowSource reads Arrow files and streams.
type arrowSource struct{ *arrowfile.File }

func (s arrowSource) metadata() []pqread.KV { return s.Metadata() }

func (s arrowSource) rows() int64 { return s.Rows() }

func (s arrowSource) check(c column) (missing bool, mismatch string) {
	t, ok := s.Type(c.Name)
	if want := (arrowfile.Type{Kind: c.Kind, List: c.List}); ok && t != want {
		return false, fmt.Sprintf("the column holds %s, expected %s", t, want)
	}
	return !ok, ""
}

func (s arrowSource) next(names []string) ([]*pqread.Chunk, int, error) { return s.Next(names) }
