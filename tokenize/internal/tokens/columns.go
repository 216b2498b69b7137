package tokens

import (
	"runtime"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Columns is a run of tokens with the origin of each: the part of a rollout.Sequence that
// follows from rendering.
type Columns struct {
	IDs    []rollout.TokenID
	Source []int32
	Flags  []rollout.Flag
}

func (c *Columns) Len() int { return len(c.IDs) }

func (c *Columns) Truncate(n int) {
	c.IDs, c.Source, c.Flags = c.IDs[:n], c.Source[:min(n, len(c.Source))], c.Flags[:min(n, len(c.Flags))]
}

func (c *Columns) Add(id rollout.TokenID, source int32, flags rollout.Flag) {
	c.IDs = append(c.IDs, id)
	c.Source = append(c.Source, source)
	c.Flags = append(c.Flags, flags)
}

// grow makes room for n more tokens.
func (c *Columns) grow(n int) {
	c.IDs, c.Source, c.Flags = slices.Grow(c.IDs, n), slices.Grow(c.Source, n), slices.Grow(c.Flags, n)
}

// Reserve makes room for the rest of a text of which the first done bytes are encoded, if its
// tokens are so many that growing step by step would move most of them more than once.
func (c *Columns) Reserve(done, text int) {
	more := float64(c.Len()) * float64(text-done) / float64(max(1, done))
	if c.Len() < hugeIDs/8 || float64(cap(c.IDs)-c.Len()) >= more {
		return
	}
	c.grow(int(more * 17 / 16))
	if c.Len() > hugeIDs/4 {
		runtime.GC() // the old arrays are garbage
	}
}

func (c *Columns) room() int { return cap(c.IDs) - len(c.IDs) }

func (c *Columns) takeIDs(ids []rollout.TokenID) { c.IDs = append(c.IDs, ids...) }

func (c *Columns) put(r run) {
	from := len(c.Source)
	c.Source, c.Flags = slices.Grow(c.Source, len(c.IDs)-from)[:r.end], slices.Grow(c.Flags, len(c.IDs)-from)[:r.end]
	for i := from; i < r.end; i++ {
		c.Source[i], c.Flags[i] = r.source, r.flags
	}
}

func (c Columns) Slice(from, to int) Columns {
	return Columns{c.IDs[from:to:to], c.Source[from:to:to], c.Flags[from:to:to]}
}

// Clone returns a copy of c.
func (c Columns) Clone() Columns {
	return Columns{slices.Clone(c.IDs), slices.Clone(c.Source), slices.Clone(c.Flags)}
}
