// Package heap limits the memory that a command takes on large inputs.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// slack is the memory in bytes allowed in addition to 5/4 of the live heap.
const slack = 10 << 20

// first is the memory limit at the start, and steady the limit below which it no longer
// falls: a run that has been that large may stay so, and then collects half as often when
// it holds less.
const (
	first  = 112 << 20
	steady = 160 << 20
)

// Bound makes the garbage collector run, and return memory, before the live heap grows by
// a quarter plus 10 MiB, where Go's default lets it double. A long record is held several
// times at once, and its garbage comes in pieces of that size that fit no free gap. If
// GOGC or GOMEMLIMIT is set, Bound does nothing.
func Bound() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(first)
	adjustAfterGC()
}

// adjustAfterGC adjusts the limit after the next collection.
func adjustAfterGC() {
	runtime.AddCleanup(new([16]byte), func(int) {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(s)
		n := [5]uint64{}
		for i := range s {
			if s[i].Value.Kind() != metrics.KindUint64 {
				return
			}
			n[i] = s[i].Value.Uint64()
		}
		beside := n[1] - min(n[1], n[2]+n[3]+n[4])
		debug.SetMemoryLimit(max(limitFor(n[0], beside), min(debug.SetMemoryLimit(-1), steady)))
		adjustAfterGC()
	}, 0)
}

// limitFor returns the memory limit in bytes for a live heap of inUse. beside is the overhead
// of the collector.
func limitFor(inUse, beside uint64) int64 {
	return int64(inUse + inUse/4 + slack + beside)
}
