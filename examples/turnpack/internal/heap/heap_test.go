package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	Bound()
	require.EqualValues(t, limit, debug.SetMemoryLimit(-1))
	becomes := func(least, most int64) {
		require.Eventually(t, func() bool {
			runtime.GC()
			now := debug.SetMemoryLimit(-1)
			return now >= least && now <= most
		}, time.Minute, time.Millisecond)
	}
	becomes(slack, 4*slack)
	some := make([]byte, 100<<20) // never touched: it takes no memory
	becomes(slack+125<<20, 4*slack+125<<20)
	runtime.KeepAlive(some)
	large := make([]byte, most+1<<20)
	becomes(math.MaxInt64, math.MaxInt64)
	runtime.KeepAlive(large)
	becomes(slack, 4*slack)
}

func TestBoundLeavesSettings(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetMemoryLimit(-1)
	Bound()
	require.Equal(t, before, debug.SetMemoryLimit(-1))
}
