package step

import (
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// The per-step rows of a rollout with 200 turns that ends at 100,000 tokens, ten million
// tokens in all, take less than 128 MB until their group is written for a trainer.
func TestMemoryOfPerStepRowsOfATarget(t *testing.T) {
	const turns, each = 200, 500
	ids, flags := make([]int32, turns*each), make([]rollout.Flag, turns*each)
	for i := range ids {
		ids[i] = int32(i*7919%150_000) + 1
	}
	none := slices.Repeat([]int32{-1}, len(ids))
	slime, err := target.New("slime", target.Options{})
	require.NoError(t, err)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	w, err := export.NewWriter(io.Discard, export.Options{})
	require.NoError(t, err)
	g := &Groups{Target: slime, To: measured{Files{w}, func() {
		runtime.ReadMemStats(&now) // garbage included
		peak = max(peak, now.HeapAlloc)
	}}, TempDir: t.TempDir()}
	for k := range turns {
		n := (k + 1) * each
		s := rollout.Sample{Status: rollout.StatusCompleted, Temperature: 1, Advantage: new(0.5), PromptLen: n - 100, RolloutMaskSum: turns * 100}
		s.Group, s.Rollout, s.ID = "g", "g/0", rollout.SampleID("g/0", k)
		s.SampleIndex, s.IsLast = k, k == turns-1
		s.FirstStep, s.LastStep, s.FirstTurn, s.LastTurn = k, k, k, k
		s.IDs, s.Flags, s.Source = ids[:n], flags[:n], none[:n]
		s.Turn, s.Weight, s.Logprob = slices.Clone(none[:n]), make([]float32, n), make([]float32, n)
		for i := n - 100; i < n; i++ {
			s.Turn[i], s.Weight[i], s.Logprob[i] = int32(k), 1, -0.5
		}
		require.NoError(t, Rows{g}.Write(s))
	}
	require.NoError(t, g.Close())
	require.Equal(t, turns, w.Stats().Rows)
	require.EqualValues(t, turns*(turns+1)/2*each, w.Stats().Tokens)
	used := peak - min(before.HeapAlloc, peak)
	t.Logf("%d tokens in %d rows, %.1f MB", w.Stats().Tokens, turns, float64(used)/1e6)
	require.Less(t, used, uint64(128e6))
}

// measured calls look before it passes a row on.
type measured struct {
	Sink
	look func()
}

func (m measured) Row(r spool.Row) error {
	m.look()
	err := m.Sink.Row(r)
	m.look()
	return err
}
