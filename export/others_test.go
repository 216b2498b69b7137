package export_test

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/arrowfile"
	"github.com/turnpack/turnpack/internal/pqread"
)

// table describes a table that internal/oracle/write_tables.py wrote, and the writer of the
// file in each format.
type table struct {
	By      map[string]string
	Columns map[string]tableColumn
}

// tableColumn is a column over all row groups.
type tableColumn struct {
	Kind         string
	List         bool
	NullElements int `json:"null_elements"`
	Lens         []int32
	Nulls        []bool
	Bools        []bool
	Numbers      []int64 // floats as their bits
	Texts        []string
}

func joined(kind string, list bool, chunks []*pqread.Chunk) tableColumn {
	out := tableColumn{Kind: kind, List: list, Lens: []int32{}, Nulls: []bool{}, Bools: []bool{}, Numbers: []int64{}, Texts: []string{}}
	for _, c := range chunks {
		out.NullElements += c.NullElements
		out.Lens, out.Nulls, out.Texts = append(out.Lens, c.Lens...), append(out.Nulls, c.Nulls...), append(out.Texts, c.Texts...)
		for _, v := range c.Ints {
			if kind == "bool" {
				out.Bools = append(out.Bools, v == 1)
			} else {
				out.Numbers = append(out.Numbers, int64(v))
			}
		}
		out.Numbers = append(out.Numbers, c.Longs...)
		for _, v := range c.Floats {
			out.Numbers = append(out.Numbers, int64(int32(math.Float32bits(v))))
		}
		for _, v := range c.Doubles {
			out.Numbers = append(out.Numbers, int64(math.Float64bits(v)))
		}
	}
	return out
}

// Random tables are read as they were written: Parquet by pyarrow, polars and duckdb in every
// codec and page version; Arrow files and streams by pyarrow, among columns of types that File
// does not read.
func TestPythonTables(t *testing.T) {
	dir := t.TempDir()
	python(t, "write_tables.py", dir, "300")
	said, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, said, 300)
	for _, path := range said {
		var want table
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &want))
		for format, read := range map[string]func(*testing.T, io.ReaderAt, int64, *table){"parquet": readParquet, "arrow": readArrow, "arrows": readArrow} {
			t.Run(filepath.Base(path)+"/"+format, func(t *testing.T) {
				file, err := os.Open(strings.TrimSuffix(path, "json") + format)
				require.NoError(t, err)
				defer file.Close()
				info, err := file.Stat()
				require.NoError(t, err)
				t.Log(want.By[format])
				read(t, file, info.Size(), &want)
			})
		}
	}
}

func readParquet(t *testing.T, r io.ReaderAt, size int64, want *table) {
	f, err := pqread.Open(r, size)
	require.NoError(t, err)
	require.Len(t, f.Leaves, len(want.Columns))
	for _, leaf := range f.Leaves {
		var chunks []*pqread.Chunk
		for g := range f.RowGroups() {
			c, err := f.Read(g, leaf)
			require.NoError(t, err, leaf.Name)
			chunks = append(chunks, c)
		}
		require.Equal(t, want.Columns[leaf.Name], joined(want.Columns[leaf.Name].Kind, leaf.List, chunks), leaf.Name)
	}
}

func readArrow(t *testing.T, r io.ReaderAt, size int64, want *table) {
	f, err := arrowfile.Open(r, size)
	require.NoError(t, err)
	var names []string
	for name, c := range want.Columns {
		typ, ok := f.Type(name)
		require.True(t, ok, name)
		if c.Kind == "double" {
			require.NotEmpty(t, typ.Other, name)
			continue
		}
		require.Equal(t, "", typ.Other, name)
		require.Equal(t, c.List, typ.List, name)
		names = append(names, name)
	}
	chunks := make([][]*pqread.Chunk, len(names))
	for {
		next, _, err := f.Next(names)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		for i, c := range next {
			chunks[i] = append(chunks[i], c)
		}
	}
	for i, name := range names {
		c := want.Columns[name]
		require.Equal(t, c, joined(c.Kind, c.List, chunks[i]), name)
	}
}
