package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The limit follows the live heap up and down, but does not fall below steady.
func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	Bound()
	becomes := func(least, most int64) {
		require.Eventually(t, func() bool {
			runtime.GC()
			now := debug.SetMemoryLimit(-1)
			return now >= least && now <= most
		}, time.Minute, time.Millisecond)
	}
	follows := func(inUse int64) {
		becomes(inUse+inUse/4+slack, inUse+inUse/4+4*slack)
	}
	becomes(first, first)
	some := make([]byte, 100<<20) // never touched, so it takes no memory
	follows(int64(len(some)))
	more := make([]byte, 400<<20)
	follows(int64(len(some) + len(more)))
	runtime.KeepAlive(some)
	runtime.KeepAlive(more)
	becomes(steady, steady)
}

func TestBoundLeavesSettings(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetMemoryLimit(-1)
	Bound()
	require.Equal(t, before, debug.SetMemoryLimit(-1))
}
