package pq

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// written is what internal/oracle/write_parquet.py says of a column.
type written struct {
	List         bool
	NullElements int `json:"null_elements"`
	Lens         []int32
	Nulls        []bool
	Bools        []bool
	Numbers      []int64 // the bits of floats
	Texts        []string
}

func (w *written) add(c *Chunk) {
	w.NullElements += c.NullElements
	w.Lens, w.Nulls, w.Bools, w.Texts = append(w.Lens, c.Lens...), append(w.Nulls, c.Nulls...), append(w.Bools, c.Bools...), append(w.Texts, c.Texts...)
	for _, v := range c.Ints {
		w.Numbers = append(w.Numbers, int64(v))
	}
	w.Numbers = append(w.Numbers, c.Longs...)
	for _, v := range c.Floats {
		w.Numbers = append(w.Numbers, int64(int32(math.Float32bits(v))))
	}
	for _, v := range c.Doubles {
		w.Numbers = append(w.Numbers, int64(math.Float64bits(v)))
	}
}

// Random files by pyarrow, polars and duckdb, in every codec and page version,
// hold what they were given.
func TestPythonFiles(t *testing.T) {
	bin := os.Getenv("TURNPACK_PYTHON")
	if bin == "" {
		t.Skip("set TURNPACK_PYTHON to a Python with pyarrow, polars and duckdb to run this test")
	}
	dir := t.TempDir()
	out, err := exec.Command(bin, filepath.Join("..", "..", "..", "internal", "oracle", "write_parquet.py"), dir, "300").CombinedOutput()
	require.NoError(t, err, "%s", out)
	said, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, said, 300)
	for _, path := range said {
		var want struct {
			By      string
			Columns map[string]written
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &want))
		file, err := os.Open(strings.TrimSuffix(path, "json") + "parquet")
		require.NoError(t, err)
		info, err := file.Stat()
		require.NoError(t, err)
		f, err := Open(file, info.Size())
		require.NoError(t, err, want.By)
		require.Empty(t, f.Skipped, want.By)
		require.Len(t, f.Leaves, len(want.Columns), want.By)
		for _, leaf := range f.Leaves {
			got := written{List: leaf.List, Lens: []int32{}, Nulls: []bool{}, Bools: []bool{}, Numbers: []int64{}, Texts: []string{}}
			for g := range f.RowGroups() {
				c, err := f.Read(g, leaf)
				require.NoError(t, err, "%s: %s", leaf.Name, want.By)
				got.add(c)
			}
			require.Equal(t, want.Columns[leaf.Name], got, "%s: %s", leaf.Name, want.By)
		}
		require.NoError(t, file.Close())
	}
}
