package value

import (
	"slices"
	"sort"
)

// Sort returns the items sorted by keys in ascending order or, with reverse, in descending order; both are stable.
// Short lists are compared in Python's order, so that the same comparison fails if several keys cannot be compared.
func Sort(l *Limits, items, keys []Value, reverse bool) []Value {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	less := func(i, j int) bool { return l.Err == nil && Compare(l, "<", keys[i], keys[j]) }
	if reverse {
		slices.Reverse(order)
	}
	if len(order) < minMerge {
		insertionSort(order, less)
	} else {
		sort.SliceStable(order, func(i, j int) bool { return less(order[i], order[j]) })
	}
	if reverse {
		slices.Reverse(order)
	}
	out := make([]Value, len(items))
	for i, k := range order {
		out[i] = items[k]
	}
	return out
}

// minMerge is the length from which Python's sort merges.
const minMerge = 64

// insertionSort implements Python's sort for short lists: the run at the start, reversed if it descends, then binary
// insertion.
func insertionSort(order []int, less func(i, j int) bool) {
	if len(order) < 2 {
		return
	}
	n := 2
	descends := less(order[1], order[0])
	for n < len(order) && less(order[n], order[n-1]) == descends {
		n++
	}
	if descends {
		slices.Reverse(order[:n])
	}
	for ; n < len(order); n++ {
		pivot := order[n]
		at := sort.Search(n, func(i int) bool { return less(pivot, order[i]) })
		copy(order[at+1:n+1], order[at:n])
		order[at] = pivot
	}
}
