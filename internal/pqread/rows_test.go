package pqread

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/jsonscan"
)

// rowsOf reads all rows of a file.
func rowsOf(data []byte) (out []string, err error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	rows := NewRows(f, 1<<20)
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

func fixture(t testing.TB, name string) []byte {
	data, err := os.ReadFile("testdata/" + name + ".parquet")
	require.NoError(t, err)
	return data
}

// Every type is written as the expected JSON. The file is pyarrow's.
func TestRowsOfEveryType(t *testing.T) {
	rows, err := rowsOf(fixture(t, "types"))
	require.NoError(t, err)
	require.Equal(t, []string{
		`{"m":{"k":1,"l":2},"p":[{"key":1,"value":"x"}],"b":"/wA=","ts":1704067200000000,"d":-1.50,"f":NaN,"h":1.5,"ll":[[1,2],[],null],"u":18446744073709551615,"fb":"YWI=","e":{},"i":1,"s":"a"}`,
		`{"m":{},"b":"abc","ts":1704067200000000,"d":0.01,"f":1e+300,"h":-2.0,"u":0,"fb":"Y2Q=","s":"b"}`,
	}, rows)
}

// Encodings that writers take when asked to. The file is pyarrow's.
func TestRowsOfEveryEncoding(t *testing.T) {
	rows, err := rowsOf(fixture(t, "encodings"))
	require.NoError(t, err)
	require.Len(t, rows, 200)
	for i, row := range rows {
		sign := 1 - 2*(i%2)
		require.Equal(t, fmt.Sprintf(`{"a":%d,"b":%d,"c":%t,"s":"row %d","l":"%s","u":%d,"d":%s}`, i*i*37%1001-500, sign*(i<<40), i%3 == 0, i/2, strings.Repeat("x", i%5), 4294967295-i,
			jsonscan.AppendFloat(nil, float64(i)/4, 64)), row)
	}
}

// decimals reads the rows of a fixture as if its column name held decimals.
func decimals(t *testing.T, data []byte, name string, scale int) ([]byte, error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	i := slices.IndexFunc(f.columns, func(n *node) bool { return n.name == name })
	e := &f.columns[i].schema
	e.text, e.decimal, e.scale = false, true, scale
	row, err := NewRows(f, 1<<20).Next()
	return row, err
}

func TestDecimals(t *testing.T) {
	data := fixture(t, "types")
	for scale, want := range map[int]string{0: `"i":1,"s":97}`, 1: `"s":9.7}`, 3: `"s":0.097}`, -2: `"s":9700}`} {
		row, err := decimals(t, data, "s", scale)
		require.NoError(t, err)
		require.Contains(t, string(row), want)
	}
	row, err := decimals(t, data, "i", -2)
	require.NoError(t, err)
	require.Contains(t, string(row), `"i":100,`)
	for _, scale := range []int{maxScale + 1, -maxScale - 1} {
		for _, name := range []string{"i", "s"} {
			_, err := decimals(t, data, name, scale)
			require.EqualError(t, err, fmt.Sprintf("row group 0: column %s: a decimal of scale %d, expected -1000 to 1000", name, scale))
		}
	}
	for x, want := range map[int64]string{0: "0", 5: "500", -5: "-500"} {
		got, err := appendDecimal(nil, big.NewInt(x), -2)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// A decimal of any length is read if its number fits into 256 bits.
func TestLongDecimals(t *testing.T) {
	for _, c := range []struct {
		lead   byte
		digits []byte
		want   string
	}{
		{0x00, []byte{5}, "0.05"},
		{0xff, []byte{0x80}, "-1.28"},
		{0x00, []byte{0x80}, "1.28"},
		{0xff, []byte{0x7f}, "-1.29"},
		{0x00, nil, "0.00"},
		{0xff, nil, "-0.01"},
		{0x00, bytes.Repeat([]byte{0x7f}, maxDecimal), ""},
		{0xff, bytes.Repeat([]byte{0x80}, maxDecimal), ""},
	} {
		for _, lead := range []int{1, 4 << 20} {
			got, err := AppendDecimal(nil, append(bytes.Repeat([]byte{c.lead}, lead), c.digits...), 2)
			require.NoError(t, err)
			if c.want == "" {
				require.Greater(t, len(got), 70)
			} else {
				require.Equal(t, c.want, string(got))
			}
		}
	}
	for _, digits := range [][]byte{append([]byte{0x00}, bytes.Repeat([]byte{0x80}, maxDecimal)...), append([]byte{0xff}, bytes.Repeat([]byte{0x7f}, maxDecimal)...)} {
		_, err := AppendDecimal(nil, digits, 2)
		require.EqualError(t, err, "a decimal of 33 bytes, expected at most 32")
	}
	start := time.Now()
	_, err := AppendDecimal(nil, bytes.Repeat([]byte{1}, 4<<20), 2)
	require.EqualError(t, err, "a decimal of 4194304 bytes, expected at most 32")
	require.Less(t, time.Since(start), time.Second)
	_, err = decimals(t, fixture(t, "long"), "s", 0)
	require.ErrorContains(t, err, "row group 0: column s: a decimal of ")
}

// Keys that are written as numbers cannot be the keys of an object.
func TestMapsOfNumbersAreNoObjects(t *testing.T) {
	for _, key := range []element{{typ: ByteArray, text: true}, {typ: ByteArray}, {typ: ByteArray, decimal: true}, {typ: ByteArray, half: true}, {typ: Int32}} {
		read, err := readTree([]element{{children: 1}, {name: "m", pair: true, children: 1}, {name: "key_value", repetition: repeated, children: 2}, key, {typ: Int32}})
		require.NoError(t, err)
		require.Equal(t, key.typ == ByteArray && !key.decimal && !key.half, read.columns[0].pairs, "%+v", key)
	}
}

// A damaged file gives an error or other rows, within limits of time and memory.
func TestDamagedRows(t *testing.T) {
	for _, name := range []string{"types", "nested"} {
		data := fixture(t, name)
		for n := range len(data) {
			_, err := rowsOf(data[:n])
			require.Error(t, err, "the first %d bytes of %s", n, name)
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
	f.Add(fixture(f, "types"))
	f.Add(fixture(f, "nested"))
	f.Fuzz(func(t *testing.T, data []byte) { rowsOf(data) })
}

// Rows with long texts given separately are equal to those with the texts in place. The texts
// of long.parquet (pyarrow) need escaping.
func TestGivenTexts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.parquet")
	require.NoError(t, err)
	more, err := filepath.Glob("../../rollout/traj/testdata/parquet/*.parquet")
	require.NoError(t, err)
	given := 0
	for _, path := range append(paths, more...) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		whole, wholeErr := rowsOf(data)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			continue
		}
		rows := NewRows(f, 1<<20)
		rows.Give()
		for _, want := range whole {
			row, err := rows.Next()
			require.NoError(t, err, path)
			texts, n := rows.Given()
			given += len(texts)
			var a, b jsonscan.Doc
			v, err := a.Parse(row, jsonscan.Options{Given: texts, NonFinite: true})
			require.NoError(t, err, path)
			require.Equal(t, want, string(v.Raw()))
			require.LessOrEqual(t, len(row)+n, len(want)+2*len(texts))
			w, err := b.Parse([]byte(want), jsonscan.Options{NonFinite: true})
			require.NoError(t, err)
			same(t, w, v)
		}
		if wholeErr == nil {
			_, err = rows.Next()
			require.Equal(t, io.EOF, err)
		}
	}
	require.Positive(t, given)
}

func same(t *testing.T, want, got jsonscan.Value) {
	t.Helper()
	require.Equal(t, want.Kind(), got.Kind())
	require.Equal(t, want.String(), got.String())
	require.Equal(t, want.Word(), got.Word())
	require.True(t, got.Kind() != jsonscan.String || got.Is(want.String()))
	require.False(t, got.LoneSurrogate())
	require.Equal(t, string(want.Clone()), string(got.Clone()))
	var list []jsonscan.Value
	for _, x := range want.Items() {
		list = append(list, x)
	}
	for i, x := range got.Items() {
		same(t, list[i], x)
	}
	for key, x := range got.Members() {
		same(t, want.Get(key), x)
	}
}
