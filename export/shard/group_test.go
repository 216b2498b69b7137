package shard_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

// byGroup divides rows by group.
func byGroup(in []rollout.Sample) (out [][]rollout.Sample) {
	for i := range in {
		if i == 0 || in[i].Group != in[i-1].Group {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], in[i])
	}
	return out
}

// A step is readable when EndStep returns. The next step may have the same groups with other
// rollouts; rollouts and, within a step, groups must be unique.
func TestEndStep(t *testing.T) {
	g := byGroup(rows(3))
	step := func(n string) (out [][]rollout.Sample) {
		for _, of := range g {
			of = slices.Clone(of)
			for i := range of {
				of[i].Rollout, of[i].ID = n+of[i].Rollout, ""
			}
			out = append(out, of)
		}
		return out
	}
	write := func(s *shard.Set, of []rollout.Sample) error {
		for _, row := range of {
			if err := s.Write(row); err != nil {
				return err
			}
		}
		return nil
	}
	dir := t.TempDir()
	s, err := shard.Create(dir, shard.Options{})
	require.NoError(t, err)
	for i, n := range []string{"0/", "1/", "2/"} {
		for _, of := range step(n) {
			require.NoError(t, write(s, of))
		}
		require.NoError(t, s.EndStep())
		part := filepath.Join(dir, []string{"data/part-00000.parquet", "data/part-00001.parquet", "data/part-00002.parquet"}[i])
		read, _, err := export.ReadAll(part)
		require.NoError(t, err)
		require.Len(t, read, len(rows(3)))
		require.ErrorIs(t, shard.Unfinished(part), export.ErrUnfinished)
	}
	require.NoError(t, s.EndStep(), "a step without a row")
	require.NoError(t, s.Close())
	require.NoError(t, shard.Verify(dir))
	require.Len(t, s.Manifest().Shards, 3)
	require.Equal(t, 9, s.Manifest().Groups)
	require.NoError(t, shard.Unfinished(filepath.Join(dir, "data", "part-00000.parquet")))

	s, err = shard.Create(t.TempDir(), shard.Options{})
	require.NoError(t, err)
	require.NoError(t, write(s, step("0/")[0]))
	require.NoError(t, s.EndStep())
	require.ErrorContains(t, write(s, step("0/")[0]), "was closed before", "a rollout comes once in the set")
	require.NoError(t, s.Abort())

	s, err = shard.Create(t.TempDir(), shard.Options{})
	require.NoError(t, err)
	require.NoError(t, s.EndStep())
	for _, of := range step("0/")[:2] {
		require.NoError(t, write(s, of))
	}
	require.ErrorContains(t, write(s, step("1/")[0]), "was closed before", "a group comes once in a step")
	require.NoError(t, s.Abort())

	s, err = shard.Create(t.TempDir(), shard.Options{})
	require.NoError(t, err)
	require.NoError(t, write(s, step("0/")[0]))
	require.NoError(t, s.Abort())
	require.ErrorIs(t, s.EndStep(), export.ErrAborted)
}
