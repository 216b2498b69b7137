package shard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

// Shards that are written separately, each by a writer that knows only its own rows, merge into
// the set that one writer makes of all rows.
func TestMergedShardsAreThoseOfOneWriter(t *testing.T) {
	o := shard.Options{GroupsPerShard: 3, Name: func(i int) string { return fmt.Sprintf("data/step_%d.parquet", i) }}
	in := rows(10)
	one := t.TempDir()
	want, err := run(one, in, o)
	require.NoError(t, err)

	groups, files := byGroup(in), contents(t, one)
	var parts []*shard.Manifest
	for i := 0; i*o.GroupsPerShard < len(groups); i++ {
		var mine []rollout.Sample
		for _, g := range groups[i*o.GroupsPerShard : min((i+1)*o.GroupsPerShard, len(groups))] {
			mine = append(mine, g...)
		}
		apart := o
		apart.Name = func(int) string { return o.Name(i) }
		dir := t.TempDir()
		set, err := run(dir, mine, apart)
		require.NoError(t, err)
		require.Equal(t, files[o.Name(i)], contents(t, dir)[o.Name(i)])
		m := set.Manifest()
		parts = append(parts, &m)
	}
	got, err := shard.Merge(o, parts)
	require.NoError(t, err)
	require.Equal(t, want.Manifest(), *got)

	_, err = shard.Merge(o, []*shard.Manifest{parts[1], parts[0]})
	require.ErrorContains(t, err, "data/step_0.parquet")
	other := *parts[1]
	other.Tokenizer = "sha256:u"
	_, err = shard.Merge(o, []*shard.Manifest{parts[0], &other})
	require.ErrorContains(t, err, "tokenizer")
	_, err = shard.Merge(o, nil)
	require.ErrorContains(t, err, "one or more")
	_, err = shard.Merge(shard.Options{RowsPerShard: -1}, parts)
	require.ErrorContains(t, err, "RowsPerShard")
}
