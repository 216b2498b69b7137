//go:build unix

package kit

import (
	"syscall"
	"time"
)

// CPUTime is the processor time of this process so far: unlike the clock, it
// does not see the neighbours. 0 where the system does not tell.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
