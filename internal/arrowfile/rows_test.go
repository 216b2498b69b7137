package arrowfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

func rowsOf(data []byte) (out []string, err error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	rows, err := NewRows(f, 1<<20)
	if err != nil {
		return nil, err
	}
	for {
		row, err := rows.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, string(row))
	}
}

func typesFixture(t testing.TB) []byte { return fixture(t, "types.arrow") }

func fixture(t testing.TB, name string) []byte {
	data, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return data
}

// Every type has the same value as in a Parquet file. The file is pyarrow's.
func TestRowsOfEveryType(t *testing.T) {
	rows, err := rowsOf(typesFixture(t))
	require.NoError(t, err)
	require.Equal(t, []string{
		`{"m":{"k":1,"l":2},"p":[{"key":1,"value":"x"}],"b":"/wA=","ts":1704067200000000,"d":-1.50,"f":NaN,"h":1.5,"ll":[[1,2],[],null],"u":18446744073709551615,"fb":"YWI=","e":{},"i":1,"s":"a"}`,
		`{"m":{},"b":"abc","ts":1704067200000000,"d":0.01,"f":1e+300,"h":-2.0,"u":0,"fb":"Y2Q=","s":"b"}`,
	}, rows)
}

// Texts and bytes as views are written by polars unless told otherwise, lists as views by
// DuckDB. The files are polars' and pyarrow's; the lists overlap.
func TestRowsOfViews(t *testing.T) {
	rows, err := rowsOf(fixture(t, "views.arrow"))
	require.NoError(t, err)
	want := []string{
		`{"t":"exactly12byt","b":"AP8=","m":[{"role":"user","content":null},{"role":"assistant","content":"a reply that is long"}],"k":"xxxxxxxxxxxxxxxxxxxx","c":"exactly12byt"}`,
		`{"t":"thirteenbytes","b":"a text of bytes","m":[],"k":"xxxxxxxxxxxxxxxxxxxx","c":"thirteenbytes"}`,
		`{"k":"xxxxxxxxxxxxxxxxxxxx"}`,
		`{"t":"","b":"","m":[null],"k":"xxxxxxxxxxxxxxxxxxxx","c":""}`,
	}
	require.Equal(t, append(want, want[1:3]...), rows)

	rows, err = rowsOf(fixture(t, "listviews.arrows"))
	require.NoError(t, err)
	require.Equal(t, []string{`{"l":["e","f"],"n":["a"],"m":{"k":1}}`, `{"l":["a","b",null],"n":[],"m":{"k":1}}`, `{"l":[],"m":{"k":1}}`, `{"l":["a","b",null,"dddddddddddddddddddd","e","f"],"n":["dddddddddddddddddddd","e"],"m":{"k":1}}`}, rows)
}

// What a view or a list points to is checked before it is followed.
func TestViewsOutsideTheirBuffers(t *testing.T) {
	view := func(n, buffer, at int32) []byte {
		b := make([]byte, 16)
		for i, x := range []int32{n, 0, buffer, at} {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
		}
		return b
	}
	for _, bad := range [][]byte{view(-1, 0, 0), view(13, 1, 0), view(13, -1, 0), view(13, 0, -1), view(13, 0, 8), view(21, 0, 0), view(math.MaxInt32, 0, math.MaxInt32)} {
		data := fixture(t, "views.arrow")
		good := view(13, 0, 0)
		copy(good[4:], "thir")
		require.Contains(t, string(data), string(good))
		_, err := rowsOf(bytes.Replace(data, good, bad, 1))
		require.ErrorContains(t, err, "column t: a view points outside its buffers")
	}
	data, ends := fixture(t, "listviews.arrows"), []byte{4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}
	for bad, want := range map[byte]string{5: "it holds 6 values, expected 7", 0xff: "the offsets contradict each other"} {
		other := bytes.Clone(ends)
		if other[0] = bad; bad == 0xff {
			other[3] = bad
		}
		require.Equal(t, 1, bytes.Count(data, ends))
		_, err := rowsOf(bytes.Replace(data, ends, other, 1))
		require.ErrorContains(t, err, want)
	}
}

// A map with text keys is an object, however they are encoded.
func TestMapsOfTextKeys(t *testing.T) {
	for _, text := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString} {
		texts, _, err := array.FromJSON(memory.NewGoAllocator(), text, strings.NewReader(`["a", "b"]`))
		require.NoError(t, err)
		indices, _, err := array.FromJSON(memory.NewGoAllocator(), arrow.PrimitiveTypes.Int8, strings.NewReader(`[1, 0]`))
		require.NoError(t, err)
		coded := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: text}, indices, texts)
		for _, c := range []struct {
			keys arrow.Array
			want string
		}{{texts, `{"m":{"a":1,"b":0}}`}, {coded, `{"m":{"b":1,"a":0}}`}, {indices, `{"m":[{"key":1,"value":1},{"key":0,"value":0}]}`}} {
			typ := arrow.MapOf(c.keys.DataType(), arrow.PrimitiveTypes.Int8)
			pairs := array.NewData(typ.Elem(), 2, []*memory.Buffer{nil}, []arrow.ArrayData{c.keys.Data(), indices.Data()}, 0, 0)
			offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 2}))
			column := array.NewMapData(array.NewData(typ, 1, []*memory.Buffer{nil, offsets}, []arrow.ArrayData{pairs}, 0, 0))
			schema := arrow.NewSchema([]arrow.Field{{Name: "m", Type: typ}}, nil)
			var buf bytes.Buffer
			w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
			require.NoError(t, w.Write(array.NewRecord(schema, []arrow.Array{column}, 1)))
			require.NoError(t, w.Close())
			rows, err := rowsOf(buf.Bytes())
			require.NoError(t, err)
			require.Equal(t, []string{c.want}, rows, "%s", typ)
		}
	}
}

func TestScaleOfDecimals(t *testing.T) {
	read := func(scale int) ([]byte, error) {
		data := typesFixture(t)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		for i := range f.schema.fields {
			f.schema.fields[i].scale = scale
		}
		rows, err := NewRows(f, 1<<20)
		require.NoError(t, err)
		return rows.Next()
	}
	row, err := read(-2)
	require.NoError(t, err)
	require.Contains(t, string(row), `"d":-15000,`)
	_, err = read(1001)
	require.EqualError(t, err, "record batch 1: column d: a decimal of scale 1001, expected -1000 to 1000")
}

// A damaged file gives an error or other rows, within limits of time and memory.
func TestDamagedRows(t *testing.T) {
	kit.OneGoroutine(t)
	for _, data := range [][]byte{typesFixture(t), fixture(t, "views.arrow"), fixture(t, "listviews.arrows"), write(t, false), write(t, true)} {
		for n := range len(data) {
			_, err := rowsOf(data[:n])
			require.Error(t, err, "the first %d bytes", n)
		}
		r := rand.New(rand.NewPCG(1, 2))
		before := allocated()
		for range 1000 {
			bad := bytes.Clone(data)
			for range 1 + r.IntN(3) {
				bad[r.IntN(len(bad))] = byte(r.IntN(256))
			}
			rows, _ := rowsOf(bad)
			for _, row := range rows {
				if !bytes.Contains([]byte(row), []byte("NaN")) && !bytes.Contains([]byte(row), []byte("Infinity")) {
					require.True(t, json.Valid([]byte(row)), "%s", row)
				}
			}
		}
		require.Less(t, allocated()-before, uint64(1000*8<<20))
	}
}

func FuzzRows(f *testing.F) {
	for _, name := range []string{"types.arrow", "views.arrow", "listviews.arrows"} {
		f.Add(fixture(f, name))
	}
	f.Add(write(f, false))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = rowsOf(data) })
}
