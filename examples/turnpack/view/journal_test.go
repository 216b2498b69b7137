package view

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJournalIsFoundInAnyFolder(t *testing.T) {
	for _, name := range []string{"journal", "a[b]c", `a\b`, "*"} {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.False(t, journal(dir), name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "00000001.tpj"), nil, 0o600))
		require.True(t, journal(dir), name)
	}
}
