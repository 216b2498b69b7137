package shard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/shard"
)

func open(t *testing.T, dir string) *shard.Set {
	t.Helper()
	set, err := shard.Create(dir, shard.Options{RowsPerShard: 2, Source: "input"})
	require.NoError(t, err)
	return set
}

// leave copies the folder of a set as a kill would leave it.
func leave(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	return left
}

// Values given to Keep are not held in memory.
func TestKeepIsOnDisk(t *testing.T) {
	set := open(t, t.TempDir())
	defer set.Close() //nolint:errcheck // its files are not used
	value := []byte(`"` + strings.Repeat("x", 1000) + `"`)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 20_000 {
		require.NoError(t, set.Keep(fmt.Sprintf("r%d", i), 1, value))
	}
	require.Less(t, heap()-before, int64(2<<20), "20 MB were given")
	runtime.KeepAlive(set)
}

// Kept returns a value only once the rows are in a finished shard.
func TestKeptAfterItsShard(t *testing.T) {
	dir := t.TempDir()
	set := open(t, dir)
	all := rows(4)
	first, last := all[0].Rollout, all[len(all)-1].Rollout
	require.NoError(t, set.Keep(first, 1, []byte(`"old"`)))
	require.NoError(t, set.Keep(first, 1, []byte(`"new"`)))
	require.NoError(t, set.Keep(last, 1, []byte(`"early"`)))
	require.NoError(t, set.Keep("without rows", 0, []byte(`"none"`)))
	require.NoError(t, set.Keep(all[1].Rollout, 1, []byte(`"gone"`)))
	require.NoError(t, set.Keep(all[1].Rollout, 1, nil))
	for _, row := range all {
		require.NoError(t, set.Write(row))
	}
	require.NoFileExists(t, filepath.Join(dir, shard.ManifestName))
	left := open(t, leave(t, dir))
	require.NotEmpty(t, left.Shards())
	require.Equal(t, `"new"`, string(left.Kept(first)))
	require.Equal(t, `"none"`, string(left.Kept("without rows")))
	require.Nil(t, left.Kept(last), "its shard is not done")
	require.Nil(t, left.Kept(all[1].Rollout), "its rows were to be made again")
	require.NoError(t, left.Abort())
	require.NoError(t, set.Abort())
}

// A damaged, truncated or invalid journal is used up to its first fault. Rollouts missing from
// it are made again, and the final set is the same.
func TestDamagedJournal(t *testing.T) {
	all := rows(2)
	begun := t.TempDir()
	set := open(t, begun)
	var ids []string
	for _, row := range all {
		if len(ids) == 0 || ids[len(ids)-1] != row.Rollout {
			ids = append(ids, row.Rollout)
			require.NoError(t, set.Keep(row.Rollout, 1, []byte("what is kept of "+row.Rollout)))
		}
		require.NoError(t, set.Write(row))
	}
	require.NoError(t, set.Abort())
	name := filepath.Join(begun, "journal")
	journal, err := os.ReadFile(name)
	require.NoError(t, err)
	goesOn := func(text []byte) (known int) {
		dir := leave(t, begun)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "journal"), text, 0o644))
		set := open(t, dir)
		for _, id := range ids {
			if set.Holds(id) {
				require.Equal(t, "what is kept of "+id, string(set.Kept(id)))
				known++
			} else {
				require.Nil(t, set.Kept(id))
			}
		}
		for _, row := range all {
			require.NoError(t, set.Write(row))
		}
		require.NoError(t, set.Close())
		require.NoError(t, shard.Verify(dir))
		require.Len(t, set.Manifest().Shards, 2)
		return known
	}
	whole := goesOn(journal)
	require.NotZero(t, whole)
	require.Zero(t, goesOn([]byte(`{"no":"journal"}`+"\n")))
	require.Zero(t, goesOn([]byte("\xff\xff\xff\xff\xff\xff\xff\x7f")))
	for at := 0; at < len(journal); at += 29 {
		require.Zero(t, goesOn(journal[:at]), "the first %d bytes", at)
		damaged := slices.Clone(journal)
		damaged[at] ^= 4
		require.Zero(t, goesOn(damaged), "byte %d", at)
	}
	require.Equal(t, whole, goesOn(append(journal, journal[:20]...)), "a torn end")
	require.Equal(t, whole, goesOn(append(journal, make([]byte, 61)...)), "zeros, as file systems leave")
}
