// Package heap keeps a command small on large inputs.
package heap

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Sizes in bytes. What is resident holds the program itself and more beside the limit.
const (
	limit = 416 << 20
	most  = 320 << 20
)

// Bound has the garbage collected before the program takes more than some 450 MiB, while
// what it uses leaves room for that: beyond 320 MiB in use the collector goes by the growth
// alone, as Go has it. Who sets GOGC or GOMEMLIMIT decides instead.
func Bound() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limit)
	again(true)
}

// again looks after the next collection.
func again(bounded bool) {
	runtime.AddCleanup(new([16]byte), func(bounded bool) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		fits := live[0].Value.Kind() == metrics.KindUint64 && live[0].Value.Uint64() <= most
		if fits != bounded {
			debug.SetMemoryLimit(bound(fits))
		}
		again(fits)
	}, bounded)
}

func bound(fits bool) int64 {
	if fits {
		return limit
	}
	return math.MaxInt64
}
