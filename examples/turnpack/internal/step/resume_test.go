package step

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/rollout"
)

// A resumed run refuses a temperature that differs from that of the finished shards,
// though it sees none of their rows.
func TestTemperatureAcrossRuns(t *testing.T) {
	dir := t.TempDir()
	row := func(group string, temperature float32) rollout.Sample {
		s := rollout.Sample{RolloutIndex: 0, Status: rollout.StatusCompleted, Temperature: temperature, Advantage: new(float64)}
		s.Group, s.Rollout, s.IDs, s.Weight = group, group+"/0", []int32{1, 2}, []float32{0, 1}
		return rollout.FinishRows([]rollout.Sample{s})[0]
	}
	options := shard.Options{GroupsPerShard: 1, Source: "one input"}
	open := func() (*Groups, *shard.Set) {
		set, err := shard.Create(dir, options)
		require.NoError(t, err)
		slime, err := target.New("slime", target.Options{})
		require.NoError(t, err)
		g := &Groups{Target: slime, To: Files{set}, EndStep: set.EndStep}
		g.GoOn(set.Shards())
		return g, set
	}
	g, set := open()
	require.NoError(t, Rows{g}.Write(row("a", 0.7)))
	require.NoError(t, set.Keep("a/0", 1, []byte("{}")))
	require.NoError(t, g.flush())
	require.NoError(t, set.EndStep())
	require.NoError(t, set.Abort()) // as after a kill
	g, set = open()
	require.Len(t, set.Shards(), 1)
	require.Equal(t, &shard.Range{Min: float64(float32(0.7)), Max: float64(float32(0.7))}, set.Shards()[0].Temperature)
	require.NoError(t, Rows{g}.Write(row("b", 1)))
	require.ErrorContains(t, g.Close(), "sampled at 1 and row of an earlier run at 0.7")
	require.NoError(t, g.Abort())
	g, _ = open()
	require.NoError(t, Rows{g}.Write(row("b", 0.7)))
	require.NoError(t, g.Close())
}
