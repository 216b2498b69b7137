package blobstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		out = append(out, export.Settle([]rollout.Sample{s})...)
	}
	return out
}

func TestBuckets(t *testing.T) {
	ctx := context.Background()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		b, err := blob.OpenBucket(ctx, url)
		require.NoError(t, err)
		w, err := blobstore.Create(ctx, b, "a/x.parquet", export.Options{GroupRows: 3})
		require.NoError(t, err)
		for _, s := range rows(10) {
			require.NoError(t, w.Write(s))
		}
		there, err := b.Exists(ctx, "a/x.parquet")
		require.NoError(t, err)
		require.False(t, there, "not visible before Close")
		require.NoError(t, w.Close())
		r, err := blobstore.Open(ctx, b, "a/x.parquet")
		require.NoError(t, err)
		n := 0
		for {
			s, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.Equal(t, int32(n), s.IDs[2])
			n++
		}
		require.Equal(t, 10, n)

		_, err = blobstore.Create(ctx, b, "a/x.parquet", export.Options{})
		require.ErrorContains(t, err, "exists")
		w, err = blobstore.Create(ctx, b, "bad", export.Options{})
		require.NoError(t, err)
		bad := rows(1)[0]
		bad.IsLast = false
		require.NoError(t, w.Write(bad))
		require.ErrorIs(t, w.Close(), rollout.KindInput)
		w, err = blobstore.Create(ctx, b, "dropped", export.Options{})
		require.NoError(t, err)
		require.NoError(t, w.Abort())
		for _, key := range []string{"bad", "dropped"} {
			there, err := b.Exists(ctx, key)
			require.NoError(t, err)
			require.False(t, there, key)
		}
		_, err = blobstore.Open(ctx, b, "none")
		require.ErrorIs(t, err, rollout.KindInput)

		dir := t.TempDir()
		set, err := shard.Create(dir, shard.Options{GroupsPerShard: 4})
		require.NoError(t, err)
		for _, s := range rows(10) {
			require.NoError(t, set.Write(s))
		}
		require.NoError(t, set.Close())
		require.NoError(t, blobstore.Upload(ctx, b, "set", dir, false))
		require.ErrorContains(t, blobstore.Upload(ctx, b, "set", dir, false), "complete")
		r, err = blobstore.Open(ctx, b, "set/part-00002.parquet")
		require.NoError(t, err)
		require.EqualValues(t, 2, r.Info().Rows)
		require.NoError(t, b.Close())
	}
}
