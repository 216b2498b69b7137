package kit

import (
	"testing"
	"time"
)

// LeastCPU returns the processor time of the fastest of up to five runs of f, stopping after the
// first run below limit. On a loaded machine one run may take twice its time, since caches and
// cores are shared; code that is too slow is slow in every run.
func LeastCPU(t testing.TB, limit time.Duration, f func()) time.Duration {
	t.Helper()
	least := time.Duration(1<<63 - 1)
	for range 5 {
		used := CPUTime()
		f()
		if least = min(least, CPUTime()-used); least < limit {
			break
		}
	}
	return least
}
