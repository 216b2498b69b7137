package atomic_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/atomic"
)

// Folders that a killed process left are removed with the next one; folders in use and other
// folders stay.
func TestTempFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: a file that is open cannot be removed there; run on another system")
	}
	dir := t.TempDir()
	for _, name := range []string{"x-killed/.held", "x-killed/batch/part", "x-other/file", "y-killed/.held"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	first, removed, err := atomic.TempFolder(dir, "x-")
	require.NoError(t, err)
	require.Equal(t, []string{"x-killed"}, removed)
	second, removed, err := atomic.TempFolder(dir, "x-")
	require.NoError(t, err)
	require.Empty(t, removed, "the first is held")
	require.ElementsMatch(t, []string{"x-other", "y-killed", filepath.Base(first.Path), filepath.Base(second.Path)}, names(t, dir))
	require.NoError(t, first.Remove())
	require.NoError(t, second.Remove())
	require.ElementsMatch(t, []string{"x-other", "y-killed"}, names(t, dir))
	_, _, err = atomic.TempFolder(filepath.Join(dir, "none"), "x-")
	require.ErrorContains(t, err, "make the folder first")
}
