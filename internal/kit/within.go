package kit

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Within fails t if f takes more processor time than most, or allocates more than bytes in all,
// counted for this process.
func Within(t testing.TB, most time.Duration, bytes uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := CPUTime()
	f()
	used := CPUTime() - began
	runtime.ReadMemStats(&after)
	require.Less(t, used, most, "processor time")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, bytes, "bytes allocated")
}
