package pack

import (
	"cmp"
	"slices"
	"sort"
)

// Bin is a set of items: their indices in input order and the sum of their sizes.
type Bin struct {
	Items []int
	Size  int
}

// BestFit packs items, each of a size from 1 to capacity, by best-fit decreasing: largest
// first, each into the fullest bin with room for it. Bins are ordered by their first item,
// items inside a bin by input order.
func BestFit(sizes []int, capacity int) []Bin {
	var f fitter
	for _, i := range decreasing(sizes) {
		f.put(i, sizes[i], capacity)
	}
	bins := make([]Bin, len(f.open))
	for i, b := range f.open {
		slices.Sort(b.bin.Items)
		bins[i] = b.bin
	}
	slices.SortFunc(bins, func(a, b Bin) int { return cmp.Compare(a.Items[0], b.Items[0]) })
	return bins
}

// decreasing returns the indices of values, largest value first.
func decreasing(values []int) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}

// fitter holds the open bins, by decreasing free space, then by age.
type fitter struct {
	open []slot
	made int
}

type slot struct {
	free, age int
	bin       Bin
}

func (f *fitter) less(free, age int) func(i int) bool {
	return func(i int) bool {
		s := f.open[i]
		return s.free > free || s.free == free && s.age >= age
	}
}

// put adds an item to the fullest bin with room for it, or to a new one.
func (f *fitter) put(item, size, capacity int) {
	i := sort.Search(len(f.open), f.less(size, 0))
	var s slot
	if i < len(f.open) {
		s = f.open[i]
		f.open = slices.Delete(f.open, i, i+1)
	} else {
		s = slot{free: capacity, age: f.made}
		f.made++
	}
	s.free -= size
	s.bin.Size += size
	s.bin.Items = append(s.bin.Items, item)
	f.open = slices.Insert(f.open, sort.Search(len(f.open), f.less(s.free, s.age)), s)
}

// Balance spreads bins over ranks: largest first, each to the least loaded rank with room. The
// numbers of bins per rank differ by at most one. It returns the bin indices of each rank in
// input order.
func Balance(bins []Bin, ranks int) [][]int {
	sizes := make([]int, len(bins))
	for i, b := range bins {
		sizes[i] = b.Size
	}
	room := (len(bins) + ranks - 1) / ranks
	out, load := make([][]int, ranks), make([]int, ranks)
	for _, i := range decreasing(sizes) {
		best := -1
		for r := range ranks {
			if len(out[r]) < room && (best < 0 || load[r] < load[best]) {
				best = r
			}
		}
		out[best] = append(out[best], i)
		load[best] += sizes[i]
	}
	for _, r := range out {
		slices.Sort(r)
	}
	return out
}
