package atomic_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/atomic"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Files that a killed writer of the same output left are removed when the next one starts;
// those of a live writer and other files stay.
func TestCreateSweeps(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows shows no names of open files; run on another system")
	}
	dir := t.TempDir()
	others := []string{".b.parquet.7.partial", ".a.parquet.x.7.partial", ".a.parquet..partial", "a.parquet.7.partial", ".a.parquet.7.part", ".7.partial", ".partial"}
	for _, name := range append([]string{".a.parquet.123.partial", ".a.parquet.4.partial"}, others...) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600))
	}
	path := filepath.Join(dir, "a.parquet")
	first, err := atomic.Create(path, true)
	require.NoError(t, err)
	second, err := atomic.Create(path, true)
	require.NoError(t, err)
	require.Len(t, names(t, dir), len(others)+2, "two that are being written")
	require.Subset(t, names(t, dir), others)
	require.Equal(t, []string{".a.parquet.x.7.partial", ".b.parquet.7.partial"}, atomic.Sweep(dir, ""), "names of any output, and of nothing else")
	for _, f := range []*atomic.File{first, second} {
		_, err := f.Write([]byte("whole"))
		require.NoError(t, err)
		require.NoError(t, f.Commit())
	}
	require.ElementsMatch(t, append(others[2:], "a.parquet"), names(t, dir))
}

// Sweeps that run beside writers remove nothing that is in use.
func TestWritersBesideSweeps(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for k := range 20 {
				path := filepath.Join(dir, fmt.Sprint(w%2, "-", k)) // two writers per path
				if err := atomic.WriteFile(path, []byte(path), true); err != nil {
					t.Error(err)
				}
				atomic.Sweep(dir, "")
			}
		})
	}
	wg.Wait()
	require.Len(t, names(t, dir), 40)
	for _, name := range names(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, name), string(b))
	}
}
