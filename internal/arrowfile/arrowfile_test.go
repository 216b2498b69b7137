package arrowfile

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/internal/pqread"
)

var (
	testNames = []string{"b", "n8", "n32", "n64", "f", "t", "lb", "l32", "lt", "absent"}
	list      = arrow.ListOf
	testTypes = arrow.NewSchema([]arrow.Field{
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}, {Name: "n8", Type: arrow.PrimitiveTypes.Int8}, {Name: "n32", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "other", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.LargeString, Nullable: true}), Nullable: true},
		{Name: "n64", Type: arrow.PrimitiveTypes.Int64}, {Name: "f", Type: arrow.PrimitiveTypes.Float32}, {Name: "t", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "lb", Type: list(arrow.FixedWidthTypes.Boolean)}, {Name: "l32", Type: list(arrow.PrimitiveTypes.Int32), Nullable: true}, {Name: "lt", Type: list(arrow.BinaryTypes.String)},
	}, ptr(arrow.NewMetadata([]string{"k", "a"}, []string{"v", ""})))
)

func ptr[T any](v T) *T { return &v }

const testRows = `[
	{"b": true, "n8": -1, "n32": 5, "other": {"x": "y"}, "n64": 1, "f": 0.5, "t": "grüppe", "lb": [true, false], "l32": [1, null, 3], "lt": ["a", ""]},
	{"b": null, "n8": 2, "n32": null, "other": null, "n64": -9000000000, "f": -2, "t": null, "lb": [], "l32": null, "lt": []},
	{"b": false, "n8": 3, "n32": 7, "other": {"x": null}, "n64": 3, "f": 4, "t": "", "lb": [true], "l32": [], "lt": ["bc"]}]`

// wanted returns testRows as they must be read.
var wanted = []*pqread.Chunk{
	{Nulls: []bool{false, true, false}, Ints: []int32{1, 0}}, {Nulls: make([]bool, 3), Ints: []int32{-1, 2, 3}}, {Nulls: []bool{false, true, false}, Ints: []int32{5, 7}},
	{Nulls: make([]bool, 3), Longs: []int64{1, -9000000000, 3}}, {Nulls: make([]bool, 3), Floats: []float32{0.5, -2, 4}}, {Nulls: []bool{false, true, false}, Texts: []string{"grüppe", ""}},
	{Lens: []int32{2, 0, 1}, Ints: []int32{1, 0, 1}}, {Lens: []int32{2, -1, 0}, Ints: []int32{1, 3}, NullElements: 1}, {Lens: []int32{2, 0, 1}, Texts: []string{"a", "", "bc"}}, nil,
}

// write returns two equal record batches, written by arrow/go.
func write(t testing.TB, stream bool, o ...ipc.Option) []byte {
	rec, _, err := array.RecordFromJSON(memory.NewGoAllocator(), testTypes, strings.NewReader(testRows))
	require.NoError(t, err)
	var buf bytes.Buffer
	var w interface {
		Write(arrow.Record) error
		Close() error
	}
	o = append(o, ipc.WithSchema(testTypes))
	if w = ipc.NewWriter(&buf, o...); !stream {
		w, err = ipc.NewFileWriter(&seekable{Buffer: &buf}, o...)
		require.NoError(t, err)
	}
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return buf.Bytes()
}

type seekable struct{ *bytes.Buffer }

func (s seekable) Seek(int64, int) (int64, error) { return int64(s.Len()), nil }

func TestReads(t *testing.T) {
	for _, o := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
		for _, stream := range []bool{false, true} {
			data := write(t, stream, o...)
			f, err := Open(bytes.NewReader(data), int64(len(data)))
			require.NoError(t, err)
			require.Equal(t, []pqread.KV{{Key: "k", Value: "v"}, {Key: "a", Value: ""}}, f.Metadata())
			require.Equal(t, map[bool]int64{false: 6, true: -1}[stream], f.Rows())
			for range 2 {
				got, rows, err := f.Next(testNames)
				require.NoError(t, err)
				require.Equal(t, 3, rows)
				require.Equal(t, wanted, got)
			}
			_, _, err = f.Next(testNames)
			require.Equal(t, io.EOF, err)
			typ, ok := f.Type("l32")
			require.True(t, ok)
			require.Equal(t, "a list of int32", typ.String())
			typ, ok = f.Type("other")
			require.True(t, ok)
			require.Equal(t, "type 13 of Arrow", typ.String())
			_, ok = f.Type("absent")
			require.False(t, ok)
		}
	}
}

func readAll(data []byte) error {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	for err == nil {
		_, _, err = f.Next(testNames)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func TestStrictPrefixesFail(t *testing.T) {
	for _, stream := range []bool{false, true} {
		data := write(t, stream)
		require.NoError(t, readAll(data))
		for n := range data {
			require.Error(t, readAll(data[:n]), "prefix of %d of %d bytes", n, len(data))
		}
	}
}

// Damage at any byte causes no panic and takes little memory.
func TestDamagedBytes(t *testing.T) {
	kit.OneGoroutine(t)
	for _, data := range [][]byte{write(t, false), write(t, true, ipc.WithLZ4())} {
		for i := range data {
			old := data[i]
			before := allocated()
			for _, b := range []byte{0x7f, 0xff, old ^ 4} {
				data[i] = b
				_ = readAll(data)
			}
			require.Less(t, allocated()-before, uint64(128<<20), "byte %d of %d", i, len(data))
			data[i] = old
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Tables may be shared: fifteen levels that each hold the same structure eight times describe
// 35 billion columns.
func TestSharedFields(t *testing.T) {
	b := []byte{16, 0, 12, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 4, 0} // a vtable: type at 8, children at 4
	for range 15 {
		at := len(b)
		b = binary.LittleEndian.AppendUint32(b, uint32(at)) // offset back to the vtable
		b = append(binary.LittleEndian.AppendUint32(b, 8), 13, 0, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, 8)
		next := len(b) + 32
		for range 8 {
			b = binary.LittleEndian.AppendUint32(b, uint32(next-len(b)))
		}
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	b = append(b, 8, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0) // without children
	r := schemaReader{left: len(b)}
	_, err := r.field(table{&flat{b: string(b)}, 16}, 0)
	require.ErrorContains(t, err, "more fields than it has bytes for")
}

func FuzzOpen(f *testing.F) {
	f.Add(write(f, false))
	f.Add(write(f, true))
	f.Add(write(f, true, ipc.WithLZ4()))
	f.Fuzz(func(_ *testing.T, data []byte) { _ = readAll(data) })
}
