package tokens

import (
	"runtime"
	"slices"
	"sort"

	"github.com/turnpack/turnpack/rollout"
)

// Compact holds what Columns hold, with source and flags as runs: it takes little more memory
// than the ids.
type Compact struct {
	IDs  []rollout.TokenID
	runs []run
}

// run is a run of tokens of one source and one set of flags. It ends before token end and
// begins where the run before it ends.
type run struct {
	end    int
	source int32
	flags  rollout.Flag
}

// hugeIDs is the number of ids whose reallocation leaves garbage worth collecting at once.
const hugeIDs = 4 << 20

func (c *Compact) Len() int { return len(c.IDs) }

// Emptied returns an empty Compact that reuses the memory of c.
func (c *Compact) Emptied() Compact { return Compact{c.IDs[:0], c.runs[:0]} }

// Truncate keeps the first n tokens.
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

// runAt returns the index of the run that holds token at.
func (c *Compact) runAt(at int) int {
	return sort.Search(len(c.runs), func(i int) bool { return c.runs[i].end > at })
}

// mark adds the runs of o, whose ids the caller appends after it.
func (c *Compact) mark(o Columns) {
	for i := 0; i < o.Len(); {
		from := i
		for i++; i < o.Len() && o.Source[i] == o.Source[from] && o.Flags[i] == o.Flags[from]; i++ {
		}
		c.put(run{len(c.IDs) + i, o.Source[from], o.Flags[from]})
	}
}

// put adds a run, or extends the last one if it has the same source and flags.
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

// grow makes room for n more ids.
func (c *Compact) grow(n int) {
	if cap(c.IDs)-len(c.IDs) >= n {
		return
	}
	c.IDs = slices.Grow(c.IDs, n)
	if len(c.IDs) > hugeIDs {
		runtime.GC() // the old array is garbage
	}
}

// Clone copies [from, to) of c.
func (c *Compact) Clone(from, to int) Compact {
	out := Compact{IDs: slices.Clone(c.IDs[from:to])}
	if from < to {
		out.runs = make([]run, 0, c.runAt(to-1)-c.runAt(from)+1)
	}
	c.Each(from, to, func(_, to int, source int32, flags rollout.Flag) {
		out.runs = append(out.runs, run{to - from, source, flags})
	})
	return out
}

// Unattributed returns ids of which nothing else is known.
func Unattributed(ids []rollout.TokenID) Compact { return Compact{ids, []run{{len(ids), -1, 0}}} }

// CompactOf copies c.
func CompactOf(c Columns) (out Compact) {
	out.mark(c)
	out.IDs = slices.Clone(c.IDs)
	return out
}

// Each calls visit for the runs of [from, to), in order.
func (c *Compact) Each(from, to int, visit func(from, to int, source int32, flags rollout.Flag)) {
	for k := c.runAt(from); from < to; k++ {
		r := c.runs[k]
		end := min(r.end, to)
		visit(from, end, r.source, r.flags)
		from = end
	}
}

// Slice returns [from, to) of c as columns. The ids are c's own.
func (c *Compact) Slice(from, to int) Columns {
	out := Columns{IDs: c.IDs[from:to:to], Source: make([]int32, to-from), Flags: make([]rollout.Flag, to-from)}
	c.Each(from, to, func(a, b int, source int32, flags rollout.Flag) {
		fill(out.Source[a-from:b-from], source)
		fill(out.Flags[a-from:b-from], flags)
	})
	return out
}
