package lineage

import (
	"cmp"
	"slices"
)

// openStarts holds the row starts that no join leads to yet.
type openStarts struct {
	*merge
	turns []int32 // in the order of their prompts in the tree
	next  []int   // by index in turns: itself if open, else a later index that may be open
}

func newOpenStarts(m *merge, turns []int32) *openStarts {
	o := &openStarts{merge: m, turns: slices.Clone(turns), next: make([]int, len(turns)+1)}
	slices.SortStableFunc(o.turns, func(a, b int32) int { return cmp.Compare(o.place(a), o.place(b)) })
	for k := range o.next {
		o.next[k] = k
	}
	return o
}

func (o *openStarts) place(j int32) int32 { return o.pre.in[o.merge.turns[j].prompt] }

// first returns the index of an open start whose prompt passes node x.
func (o *openStarts) first(x int32) (int, bool) {
	k, _ := slices.BinarySearchFunc(o.turns, o.pre.in[x], func(j, at int32) int { return cmp.Compare(o.place(j), at) })
	return o.from(k, x)
}

// from returns k if it is open, else the next open index, if its prompt passes node x.
func (o *openStarts) from(k int, x int32) (int, bool) {
	for o.next[k] != k {
		o.next[k] = o.next[o.next[k]]
		k = o.next[k]
	}
	return k, k < len(o.turns) && o.place(o.turns[k]) <= o.pre.last[x]
}

func (o *openStarts) take(k int) { o.next[k] = k + 1 }
