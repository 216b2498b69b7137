package export_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// python runs a script of internal/oracle with the interpreter that TURNPACK_PYTHON names.
// Without one it skips the test.
func python(t testing.TB, args ...string) string {
	t.Helper()
	bin := os.Getenv("TURNPACK_PYTHON")
	if bin == "" {
		t.Skip("SKIPPED: set TURNPACK_PYTHON to a Python with pyarrow, polars, duckdb and datasets to run this test")
	}
	args[0] = filepath.Join("..", "internal", "oracle", args[0])
	out, err := exec.Command(bin, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// Four readers agree on every cell, for one file and for several with different unused columns.
// A file rewritten by pyarrow has the same rows.
func TestPythonReaders(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	rows := fixture(t, 21, 30)
	for i, o := range []export.Options{
		{GroupRows: 5}, {Columns: &export.Columns{}}, {ZstdLevel: -1, Columns: &export.Columns{Logprobs: true, Weights: true}},
	} {
		path := filepath.Join(dir, string(rune('a'+i))+".parquet")
		require.NoError(t, os.WriteFile(path, write(t, rows, o), 0o600))
		paths = append(paths, path)
	}
	t.Log(python(t, append([]string{"read_parquet.py"}, paths...)...))
	traced := filepath.Join(dir, "traced.parquet")
	require.NoError(t, os.WriteFile(traced, write(t, rows, export.Options{Trace: true}), 0o600))
	t.Log(python(t, "read_parquet.py", traced))

	var arrow []string
	for _, f := range []string{"arrow", "arrow-stream"} {
		path := filepath.Join(dir, f+".arrow")
		require.NoError(t, os.WriteFile(path, write(t, rows, export.Options{Format: f, GroupRows: 5}), 0o600))
		arrow = append(arrow, path)
	}
	python(t, "read_parquet.py", "--arrow", paths[0], arrow[0], arrow[1])

	back := filepath.Join(dir, "back")
	python(t, "read_parquet.py", "--copy", paths[0], back)
	want, info, err := export.ReadAll(paths[0])
	require.NoError(t, err)
	got, infoBack, err := export.ReadAll(back)
	require.NoError(t, err)
	require.Equal(t, info, infoBack)
	require.Equal(t, want, got)
}

// Three rows of one group, 12 MB of ids, do not fit into one page of 8 MiB.
func TestPythonReadsPages(t *testing.T) {
	rows := build(t, rand.New(rand.NewPCG(5, 1)), spec{group: "g", id: "g/r0", status: rollout.StatusCompleted, reward: 1,
		rows: [][]int{{900_000, 100_000}, {950_000, 50_000}, {990_000, 10_000}}})
	path := filepath.Join(t.TempDir(), "pages.parquet")
	require.NoError(t, os.WriteFile(path, write(t, rows, export.Options{}), 0o600))
	t.Log(python(t, "read_parquet.py", path))
}
