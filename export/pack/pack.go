package pack

import (
	"cmp"
	"slices"
	"sort"

	"github.com/turnpack/turnpack/rollout"
)

// Keep says which rows must share a bin.
type Keep uint8

// What is kept together. The zero value lets every row go where it fits best.
const (
	KeepNone     Keep = iota
	KeepRollouts      // the rows of a rollout share a bin
	KeepGroups        // the rows of a GRPO group share a bin
)

// Item is one row as packing sees it.
type Item struct {
	Size           int // tokens that the row takes in a bin
	Rollout, Group string
}

// ItemOf is the item of a row that takes all its tokens.
func ItemOf(s *rollout.Sample) Item {
	return Item{Size: s.Len(), Rollout: s.Rollout, Group: s.Group}
}

// Bin is a set of items: their indices in input order, and the sum of their
// sizes.
type Bin struct {
	Items []int
	Size  int
}

// Options says how bins are filled.
type Options struct {
	Capacity int // tokens of a bin
	Keep     Keep
}

// Validate reports a fault of o.
func (o Options) Validate() error {
	where := func(f string) rollout.Where { return rollout.Where{Field: "pack.Options." + f} }
	switch {
	case o.Capacity <= 0:
		return rollout.Errorf(rollout.KindInput, where("Capacity"), "found %d, expected at least 1", o.Capacity)
	case o.Keep > KeepGroups:
		return rollout.Errorf(rollout.KindInput, where("Keep"), "found %d, expected a Keep", o.Keep)
	}
	return nil
}

func (o *Options) key(it Item) string {
	switch o.Keep {
	case KeepRollouts:
		return it.Rollout
	case KeepGroups:
		return it.Group
	}
	return ""
}

// units joins items that must share a bin, in order of their first item.
func (o *Options) units(items []Item) ([]Bin, error) {
	var out []Bin
	at := map[string]int{}
	for i, it := range items {
		if it.Size <= 0 {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: it.Rollout}, "item %d has size %d", i, it.Size).WithFix("leave rows without tokens out")
		}
		k, known := 0, false
		if o.Keep != KeepNone {
			k, known = at[o.key(it)]
		}
		if !known {
			k = len(out)
			at[o.key(it)] = k
			out = append(out, Bin{})
		}
		out[k].Items = append(out[k].Items, i)
		out[k].Size += it.Size
		if out[k].Size > o.Capacity {
			return nil, o.tooLarge(i, it, out[k])
		}
	}
	return out, nil
}

func (o *Options) tooLarge(i int, it Item, unit Bin) error {
	e := rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: it.Rollout}, "item %d and what is kept with it (%d rows) take %d tokens, a bin holds %d", i, len(unit.Items), unit.Size, o.Capacity)
	if o.Keep != KeepNone {
		return e.WithFix("raise Capacity or keep less together")
	}
	return e.WithFix("raise Capacity or leave the row out")
}

// BestFit packs by best-fit decreasing: units from the largest on, each into
// the fullest bin that still takes it. Bins come in the order of their first
// item, items inside a bin in input order.
func BestFit(items []Item, o Options) ([]Bin, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	units, err := o.units(items)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(units, func(a, b Bin) int { return cmp.Compare(b.Size, a.Size) })
	var f fitter
	for _, u := range units {
		f.put(u, o.Capacity)
	}
	bins := make([]Bin, len(f.open))
	for i, b := range f.open {
		slices.Sort(b.bin.Items)
		bins[i] = b.bin
	}
	slices.SortFunc(bins, func(a, b Bin) int { return cmp.Compare(a.Items[0], b.Items[0]) })
	return bins, nil
}

// fitter holds open bins by free space, and by age where that is equal.
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

// put adds u to the fullest bin that takes it, or to a new one.
func (f *fitter) put(u Bin, capacity int) {
	i := sort.Search(len(f.open), f.less(u.Size, 0))
	var s slot
	if i < len(f.open) {
		s = f.open[i]
		f.open = slices.Delete(f.open, i, i+1)
	} else {
		s = slot{free: capacity, age: f.made}
		f.made++
	}
	s.free -= u.Size
	s.bin.Size += u.Size
	s.bin.Items = append(s.bin.Items, u.Items...)
	f.open = slices.Insert(f.open, sort.Search(len(f.open), f.less(s.free, s.age)), s)
}

// Fill is the share of the bins' capacity that is used, 0 without bins.
func Fill(bins []Bin, capacity int) float64 {
	used := 0
	for _, b := range bins {
		used += b.Size
	}
	if len(bins) == 0 {
		return 0
	}
	return float64(used) / float64(len(bins)*capacity)
}

// Balance spreads work over ranks: the largest cost first, each to the rank
// with the least so far among those with room. With equal set every rank gets
// the same number of items, up to one. It returns the indices of each rank in
// input order.
func Balance(costs []int64, ranks int, equal bool) ([][]int, error) {
	if ranks <= 0 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "ranks"}, "found %d, expected at least 1", ranks)
	}
	order := make([]int, len(costs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
	room := len(costs)
	if equal {
		room = (len(costs) + ranks - 1) / ranks
	}
	out, load := make([][]int, ranks), make([]int64, ranks)
	for _, i := range order {
		best := -1
		for r := range ranks {
			if len(out[r]) < room && (best < 0 || load[r] < load[best]) {
				best = r
			}
		}
		out[best] = append(out[best], i)
		load[best] += costs[i]
	}
	for _, r := range out {
		slices.Sort(r)
	}
	return out, nil
}
