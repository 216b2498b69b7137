package turnpack_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/rollout"
)

// attempts makes the rollouts of groups on demand, the first of every group before any second, so
// that all groups but one wait.
type attempts struct{ groups, each int }

func (a attempts) Rollouts(context.Context) iter.Seq2[*rollout.Rollout, error] {
	observation := strings.Repeat("a line of what the command printed\n", 200)
	return func(yield func(*rollout.Rollout, error) bool) {
		for i := range a.each {
			for g := range a.groups {
				r := attempt(fmt.Sprintf("g%d", g), i, i%2 == 0)
				r.Messages[2].Content = observation
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

type nowhere struct{}

func (nowhere) Write(rollout.Sample) error { return nil }

// peakHeap returns the largest heap in use during a run, without garbage.
func peakHeap(t *testing.T, p turnpack.Pipeline, src turnpack.Source) uint64 {
	t.Helper()
	var peak uint64
	p.Progress = func(at turnpack.Progress) {
		if at.Pass == 1 || at.Done%(at.Total/10) != 0 {
			return
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}
	_, err := p.Run(t.Context(), src, nowhere{})
	require.NoError(t, err)
	return peak
}

// Ten times the rollouts, all interleaved, take less than 1.2 times the memory.
func TestMemoryIsFlatInRollouts(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: encodes 2,400 rollouts; run without -short")
	}
	p := turnpack.WithAgainLimit(turnpack.WithHeldLimit(turnpack.Pipeline{Model: model(t), TempDir: t.TempDir()}, 512<<10), 512<<10)
	peakHeap(t, p, attempts{groups: 50, each: 4}) // fills the model's caches
	small := peakHeap(t, p, attempts{groups: 50, each: 4})
	large := peakHeap(t, p, attempts{groups: 500, each: 4})
	t.Logf("200 rollouts %.1f MB, 2,000 rollouts %.1f MB", float64(small)/1e6, float64(large)/1e6)
	require.Less(t, float64(large), 1.2*float64(small))
}
