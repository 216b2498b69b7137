package tokens

import (
	"runtime"
	"slices"
	"sort"

	"github.com/turnpack/turnpack/rollout"
)

// Compact is Columns with runs of tokens of one source and one set of flags: little
// more than the ids.
type Compact struct {
	IDs  []rollout.TokenID
	runs []run
}

// run ends before token end, and begins where the one before ends.
type run struct {
	end    int
	source int32
	flags  rollout.Flag
}

// hugeIDs are so many ids that what moves them leaves garbage worth collecting.
const hugeIDs = 4 << 20

func (c *Compact) Len() int { return len(c.IDs) }

// Emptied is the memory of c.
func (c *Compact) Emptied() Compact { return Compact{c.IDs[:0], c.runs[:0]} }

// Truncate drops what comes after the first n tokens.
func (c *Compact) Truncate(n int) {
	c.IDs = c.IDs[:n]
	k := c.runAt(n)
	if k < len(c.runs) {
		begin := 0
		if k > 0 {
			begin = c.runs[k-1].end
		}
		if begin < n {
			c.runs[k].end = n
			k++
		}
	}
	c.runs = c.runs[:k]
}

// runAt is the index of the run that holds token at.
func (c *Compact) runAt(at int) int {
	return sort.Search(len(c.runs), func(i int) bool { return c.runs[i].end > at })
}

func (c *Compact) room() int { return cap(c.IDs) - len(c.IDs) }

func (c *Compact) takeIDs(ids []rollout.TokenID) {
	c.grow(len(ids))
	c.IDs = append(c.IDs, ids...)
}

// mark notes the runs of tokens that are still to be appended.
func (c *Compact) mark(o Columns) {
	for i := 0; i < o.Len(); {
		from := i
		for i++; i < o.Len() && o.Source[i] == o.Source[from] && o.Flags[i] == o.Flags[from]; i++ {
		}
		c.put(run{len(c.IDs) + i, o.Source[from], o.Flags[from]})
	}
}

// put adds a run, which goes on from one that is alike.
func (c *Compact) put(r run) {
	if k := len(c.runs) - 1; k >= 0 && c.runs[k].source == r.source && c.runs[k].flags == r.flags {
		c.runs[k].end = r.end
	} else {
		c.runs = append(c.runs, r)
	}
}

// replay appends o without these flags.
func (c *Compact) replay(o *Compact, without rollout.Flag) {
	c.grow(o.Len())
	for _, r := range o.runs {
		c.put(run{len(c.IDs) + r.end, r.source, r.flags &^ without})
	}
	c.IDs = append(c.IDs, o.IDs...)
}

// packed is o, whose ids it keeps unless they hold much room.
func packed(o Columns) (c Compact) {
	c.mark(o)
	if c.IDs = o.IDs; cap(c.IDs) > len(c.IDs)+len(c.IDs)/8 {
		c.IDs = append(make([]rollout.TokenID, 0, len(c.IDs)), c.IDs...)
	}
	return c
}

// grow makes room for n more.
func (c *Compact) grow(n int) {
	if cap(c.IDs)-len(c.IDs) >= n {
		return
	}
	c.IDs = slices.Grow(c.IDs, n)
	if len(c.IDs) > hugeIDs {
		runtime.GC() // the ids were there twice
	}
}

// Clone is [from, to) of c in the memory of a, nil for its own.
func (c *Compact) Clone(a *Arena, from, to int) Compact {
	out := Compact{IDs: a.copyOf(c.IDs[from:to])}
	if from < to {
		out.runs = make([]run, 0, c.runAt(to-1)-c.runAt(from)+1)
	}
	c.Each(from, to, func(_, to int, source int32, flags rollout.Flag) {
		out.runs = append(out.runs, run{to - from, source, flags})
	})
	return out
}

// Arena is memory that many pieces share.
type Arena struct{ ids []rollout.TokenID }

// maxArena bounds the ids that room is made for at once.
const maxArena = 1 << 18

// copyOf is ids in the memory of a. Long ones have their own, lest much of a stays empty.
func (a *Arena) copyOf(ids []rollout.TokenID) []rollout.TokenID {
	n := len(ids)
	if a == nil || n == 0 || n > maxArena/8 {
		return slices.Clone(ids)
	}
	if cap(a.ids)-len(a.ids) < n {
		a.ids = make([]rollout.TokenID, 0, min(max(1<<12, 2*n, 2*cap(a.ids)), maxArena))
	}
	a.ids = append(a.ids, ids...)
	return a.ids[len(a.ids)-n : len(a.ids) : len(a.ids)]
}

// Emptied is the memory of a, whose pieces nobody reads any more.
func (a *Arena) Emptied() Arena { return Arena{a.ids[:0]} }

// Unattributed are ids of which nothing else is known.
func Unattributed(ids []rollout.TokenID) Compact { return Compact{ids, []run{{len(ids), -1, 0}}} }

// CompactOf is c in memory of its own.
func CompactOf(c Columns) (out Compact) {
	out.mark(c)
	out.IDs = slices.Clone(c.IDs)
	return out
}

// Each calls visit for the runs of [from, to).
func (c *Compact) Each(from, to int, visit func(from, to int, source int32, flags rollout.Flag)) {
	for k := c.runAt(from); from < to; k++ {
		r := c.runs[k]
		end := min(r.end, to)
		visit(from, end, r.source, r.flags)
		from = end
	}
}

// Slice is [from, to) of c with a source and flags for each token.
func (c *Compact) Slice(from, to int) Columns {
	out := Columns{IDs: c.IDs[from:to:to]}
	c.Each(from, to, func(from, to int, source int32, flags rollout.Flag) {
		for range to - from {
			out.Source, out.Flags = append(out.Source, source), append(out.Flags, flags)
		}
	})
	return out
}
