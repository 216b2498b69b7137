// Package heap keeps a command small on large inputs.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// slack is what may be in use beside a quarter more, in bytes.
const slack = 10 << 20

// first is the limit of a run that begins, and steady one that does not fall again: a run
// that was as large once may stay so, and collects half as often while what it holds
// becomes less.
const (
	first  = 112 << 20
	steady = 160 << 20
)

// Bound has the garbage collected, and given back, before what is in use grows by 10 MiB
// and a quarter, not by as much again as Go has it: a long record is held a few times at
// once, its garbage comes in pieces of its size, and they fit no hole. Who sets GOGC or
// GOMEMLIMIT decides instead.
func Bound() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(first)
	again()
}

// again looks after the next collection.
func again() {
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
		debug.SetMemoryLimit(max(bound(n[0], beside), min(debug.SetMemoryLimit(-1), steady)))
		again()
	}, 0)
}

// bound is the limit with so much in use, and what the collector itself takes and wastes
// beside it.
func bound(inUse, beside uint64) int64 {
	return int64(inUse + inUse/4 + slack + beside)
}
