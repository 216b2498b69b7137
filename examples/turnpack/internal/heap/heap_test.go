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
	becomes := func(want int64) {
		require.Eventually(t, func() bool {
			runtime.GC()
			return debug.SetMemoryLimit(-1) == want
		}, 10*time.Second, time.Millisecond)
	}
	large := make([]byte, most+1<<20) // never touched: it takes no memory
	becomes(math.MaxInt64)
	runtime.KeepAlive(large)
	becomes(limit)
}

func TestBoundLeavesSettings(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetMemoryLimit(-1)
	Bound()
	require.Equal(t, before, debug.SetMemoryLimit(-1))
}
