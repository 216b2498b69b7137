//go:build unix

package kit

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time of this process so far, which other processes do not affect; 0
// if the system does not report it.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
