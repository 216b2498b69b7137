package pq

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow/memory"
)

// mostBytes is how many bytes one buffer may need for reading a file of the
// given size, and mostValues how many values a row group may have: 256 times
// the file, which nothing that holds rows of a training batch comes near.
func mostBytes(fileSize int64) int64  { return max(64<<20, min(256*fileSize, 1<<40)) }
func mostValues(fileSize int64) int64 { return max(16<<20, min(256*fileSize, 1<<40)) }

// Limited is an allocator for readers of untrusted files: a size that no file
// of the given length can need ends the reading with a panic that readers turn
// into an error, instead of ending the process.
type Limited struct {
	memory.Allocator
	max int
}

// NewLimited bounds single allocations by 256 times the file size, at least 64
// MiB.
func NewLimited(fileSize int64) *Limited {
	return &Limited{Allocator: memory.NewGoAllocator(), max: int(mostBytes(fileSize))}
}

// Allocate makes n bytes or panics when n is over the bound.
func (l *Limited) Allocate(n int) []byte {
	l.check(n)
	return l.Allocator.Allocate(n)
}

// Reallocate makes b n bytes long or panics when n is over the bound.
func (l *Limited) Reallocate(n int, b []byte) []byte {
	l.check(n)
	return l.Allocator.Reallocate(n, b)
}

func (l *Limited) check(n int) {
	if n < 0 || n > l.max {
		panic(fmt.Sprintf("a buffer of %d bytes", n))
	}
}
