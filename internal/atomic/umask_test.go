//go:build unix

package atomic

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file has the permissions that its user's umask leaves, as any new file.
func TestPermissions(t *testing.T) {
	for mask, want := range map[int]fs.FileMode{0o022: 0o644, 0o077: 0o600, 0o002: 0o664} {
		path := filepath.Join(t.TempDir(), "x")
		before := syscall.Umask(mask)
		err := WriteFile(path, []byte("x"), false)
		syscall.Umask(before)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm())
	}
}
