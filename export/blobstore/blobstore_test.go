package blobstore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/memblob"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/blobstore"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

func rows(n int) (out []rollout.Sample) {
	for g := range n {
		s := rollout.Sample{Status: rollout.StatusCompleted}
		s.Group, s.Rollout = fmt.Sprintf("g%d", g), fmt.Sprintf("g%d/0", g)
		s.IDs, s.Weight = []int32{1, 2, int32(g)}, []float32{0, 0, 1}
		out = append(out, rollout.FinishRows([]rollout.Sample{s})...)
	}
	return out
}

func TestBuckets(t *testing.T) {
	ctx := context.Background()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		b, err := blob.OpenBucket(ctx, url)
		require.NoError(t, err)
		dir := t.TempDir()
		set, err := shard.Create(dir, shard.Options{GroupsPerShard: 4})
		require.NoError(t, err)
		for _, s := range rows(10) {
			require.NoError(t, set.Write(s))
		}
		require.NoError(t, set.Close())
		require.NoError(t, blobstore.Upload(ctx, b, "set", dir, false))
		require.ErrorContains(t, blobstore.Upload(ctx, b, "set", dir, false), "complete")
		data, err := blobstore.Read(ctx, b, "set/data/part-00002.parquet")
		require.NoError(t, err)
		r, err := export.NewReader(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Info().Rows)
		s, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, []int32{1, 2, 8}, s.IDs)
		require.NoError(t, b.Close())
	}
}

// Upload copies all files of a shard, not only the first.
func TestUploadOfMadeShards(t *testing.T) {
	ctx := context.Background()
	b, err := blob.OpenBucket(ctx, "mem://")
	require.NoError(t, err)
	defer b.Close() //nolint:errcheck // in memory
	dir := t.TempDir()
	names := func(i int) []string { return []string{fmt.Sprintf("%d/rows", i), fmt.Sprintf("%d/about", i)} }
	made := &shard.Maker{ID: "two files", Names: names, Write: func(i int, rows []rollout.Sample) error {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(i)), 0o755); err != nil {
			return err
		}
		for _, name := range names(i) {
			if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, "%s: %d", name, len(rows)), 0o600); err != nil {
				return err
			}
		}
		return nil
	}}
	set, err := shard.Create(dir, shard.Options{GroupsPerShard: 2, Maker: made})
	require.NoError(t, err)
	for _, s := range rows(3) {
		require.NoError(t, set.Write(s))
	}
	require.NoError(t, set.Close())
	require.NoError(t, blobstore.Upload(ctx, b, "p", dir, false))
	for name, want := range map[string]string{"0/rows": "0/rows: 2", "0/about": "0/about: 2", "1/rows": "1/rows: 1", "1/about": "1/about: 1"} {
		got, err := blobstore.Read(ctx, b, "p/"+name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.True(t, stands(t, b, "p"))
}

// set makes a shard folder of groups whose tokens depend on salt.
func set(t *testing.T, groups, salt int) string {
	t.Helper()
	dir := t.TempDir()
	s, err := shard.Create(dir, shard.Options{GroupsPerShard: 2})
	require.NoError(t, err)
	for _, r := range rows(groups) {
		r.IDs = []int32{1, int32(salt), r.IDs[2]}
		require.NoError(t, s.Write(r))
	}
	require.NoError(t, s.Close())
	return dir
}

// stands reports whether every shard in the manifest under prefix matches it.
func stands(t *testing.T, b *blob.Bucket, prefix string) bool {
	t.Helper()
	ctx := context.Background()
	text, err := blobstore.Read(ctx, b, prefix+"/"+shard.ManifestName)
	require.NoError(t, err)
	var m shard.Manifest
	require.NoError(t, json.Unmarshal(text, &m))
	for _, s := range m.Shards {
		for _, f := range s.Files() {
			data, err := b.ReadAll(ctx, prefix+"/"+f.File)
			require.NoError(t, err)
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.SHA256 {
				return false
			}
		}
	}
	return true
}

// However an upload is cut short and whoever stored the existing shards, the final manifest
// matches the shards below it.
func TestUploadAfterAnother(t *testing.T) {
	ctx := context.Background()
	mine, other := set(t, 8, 1), set(t, 8, 2)
	theirs, err := shard.Read(other)
	require.NoError(t, err)
	ours, err := shard.Read(mine)
	require.NoError(t, err)
	require.Equal(t, theirs.Shards[0].Bytes, ours.Shards[0].Bytes, "a size tells nothing")
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		for cut := range 5 {
			for _, plain := range []bool{false, true} {
				b, err := blob.OpenBucket(ctx, url)
				require.NoError(t, err)
				prefix := fmt.Sprint("p", cut, plain)
				for _, s := range theirs.Shards[:cut] {
					file := filepath.Join(other, s.File)
					if plain {
						data, err := os.ReadFile(file)
						require.NoError(t, err)
						require.NoError(t, b.WriteAll(ctx, prefix+"/"+s.File, data, nil))
					} else {
						require.NoError(t, blobstore.Put(ctx, b, prefix+"/"+s.File, file))
					}
				}
				require.NoError(t, blobstore.Upload(ctx, b, prefix, mine, false))
				require.True(t, stands(t, b, prefix))
				require.ErrorIs(t, blobstore.Upload(ctx, b, prefix, other, false), export.ErrComplete)
				require.True(t, stands(t, b, prefix))
				require.NoError(t, blobstore.Upload(ctx, b, prefix, other, true))
				require.True(t, stands(t, b, prefix))
				require.NoError(t, b.Close())
			}
		}
	}
}

// An interrupted upload resumes without sending existing objects again.
func TestUploadGoesOn(t *testing.T) {
	ctx := context.Background()
	b, err := blob.OpenBucket(ctx, "mem://")
	require.NoError(t, err)
	defer b.Close() //nolint:errcheck // in memory
	dir := set(t, 8, 1)
	m, err := shard.Read(dir)
	require.NoError(t, err)
	require.NoError(t, blobstore.Put(ctx, b, "p/"+m.Shards[0].File, filepath.Join(dir, m.Shards[0].File)))
	before, err := b.Attributes(ctx, "p/"+m.Shards[0].File)
	require.NoError(t, err)
	require.NoError(t, blobstore.Upload(ctx, b, "p", dir, false))
	after, err := b.Attributes(ctx, "p/"+m.Shards[0].File)
	require.NoError(t, err)
	require.Equal(t, before.ModTime, after.ModTime)
	require.True(t, stands(t, b, "p"))
}

// A forced upload that is cut short at any point leaves no manifest over shards of another set.
func TestForcedUploadCutShort(t *testing.T) {
	first, second := set(t, 8, 1), set(t, 8, 2)
	whole := false
	for after := 0; !whole; after++ {
		b, err := blob.OpenBucket(context.Background(), "mem://")
		require.NoError(t, err)
		require.NoError(t, blobstore.Upload(context.Background(), b, "p", first, false))
		ctx, cancel := context.WithCancel(context.Background())
		whole = blobstore.Upload(&cutting{Context: ctx, after: after, cancel: cancel}, b, "p", second, true) == nil
		there, err := b.Exists(context.Background(), "p/"+shard.ManifestName)
		require.NoError(t, err)
		if there {
			require.True(t, stands(t, b, "p"), "cut after %d", after)
		} else {
			require.NoError(t, blobstore.Upload(context.Background(), b, "p", second, false))
			require.True(t, stands(t, b, "p"))
		}
		require.NoError(t, b.Close())
		cancel()
	}
}

// cutting is a context that is cancelled after a number of calls of Err.
type cutting struct {
	context.Context
	after  int
	cancel func()
}

func (c *cutting) Err() error {
	if c.after--; c.after < 0 {
		c.cancel()
	}
	return c.Context.Err()
}
