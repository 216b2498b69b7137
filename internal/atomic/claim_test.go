package atomic

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without hard links, still exactly one of many writers gets the name.
func TestClaimed(t *testing.T) {
	dir := t.TempDir()
	for range 1000 {
		to := filepath.Join(dir, "to")
		var wins atomic.Int32
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				from := filepath.Join(dir, string(rune('a'+i)))
				if err := os.WriteFile(from, nil, 0o600); err != nil {
					t.Error(err)
				}
				switch err := claimed(from, to); {
				case err == nil:
					wins.Add(1)
				default:
					require.ErrorIs(t, err, fs.ErrExist)
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, wins.Load(), int32(1))
		if wins.Load() == 1 {
			require.NoError(t, os.Remove(to))
		}
	}
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.WriteFile(from, nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".to.0"+TempSuffix), nil, 0o600), "of a killed writer")
	require.NoError(t, claimed(from, to))
	require.ErrorIs(t, claimed(to, to), fs.ErrExist)
}
