package kit

import (
	"testing"
	"time"
)

// LeastCPU is the processor time of the fastest of up to five runs of f; runs end with
// the first below limit. On a machine that others load, one run may take twice its
// time, for caches and cores are shared; what takes too long by itself does so always.
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
