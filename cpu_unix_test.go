//go:build unix

package turnpack_test

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of this process: unlike the clock, it does not
// see the neighbours.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
