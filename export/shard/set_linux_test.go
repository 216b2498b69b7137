package shard_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/shard"
)

// A full disk gives one error that says what to do. The finished shards stay, and with more
// room the run resumes.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96k"); err != nil {
		t.Skipf("SKIPPED: no right to mount a small file system (%v); run as root", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) }()
	in := rows(80)
	_, err := run(dir, in, small)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "free space")
	done, err := filepath.Glob(filepath.Join(dir, "data", "*.parquet"))
	require.NoError(t, err)
	require.NotEmpty(t, done)
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"))
	s, err := run(dir, in, small)
	require.NoError(t, err)
	require.Positive(t, s.resumed)
	require.NoError(t, shard.Verify(dir))
}
