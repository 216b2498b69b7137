// Package roster stores the rollouts that a run read, in order, with what an estimator knows of each and
// without a pointer for any. It encodes a roster in about twenty bytes per rollout, where JSON takes two
// hundred, for a state that is written and read as a whole.
package roster

import (
	"cmp"
	"encoding/gob"
	"io"
	"math"

	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/internal/packed"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// Roster holds the rollouts of a run in their order. The zero value is empty.
type Roster struct {
	files, reasons keys.Keys // reasons = why rollouts are excluded
	ids            []byte
	pages          []*[pageSize]entry
	n              int
}

// entry is one rollout.
type entry struct {
	group, file, line, excluded int32
	rows, masked                int32
	length, id                  int // id is the end of the rollout's id in ids
	reward, baseline            float64
}

// pageSize is the number of rollouts for which memory is allocated at once.
const pageSize = 1 << 10

func (r *Roster) entry(i int) *entry { return &r.pages[i/pageSize][i%pageSize] }

// id returns the id of rollout i as a slice of all, which holds the ids.
func id[T string | []byte](r *Roster, i int, all T) T {
	from := 0
	if i > 0 {
		from = r.entry(i - 1).id
	}
	return all[from:r.entry(i).id]
}

// Add appends a rollout, a member of a group.
func (r *Roster) Add(group int, from rollout.Origin, known reward.RolloutReward) {
	file, _ := r.files.Add(from.File)
	excluded, _ := r.reasons.Add(known.Excluded)
	r.ids = append(r.ids, known.ID...)
	if r.n%pageSize == 0 {
		r.pages = append(r.pages, new([pageSize]entry))
	}
	r.n++
	*r.entry(r.n - 1) = entry{int32(group), int32(file), int32(from.Line), int32(excluded), int32(known.Rows), int32(known.MaskedRows),
		known.Length, len(r.ids), known.Reward, known.Baseline}
}

// Len returns the number of rollouts.
func (r *Roster) Len() int { return r.n }

// At returns the group, the id and the origin of rollout i.
func (r *Roster) At(i int) (group int, name string, from rollout.Origin) {
	e := r.entry(i)
	return int(e.group), string(id(r, i, r.ids)), rollout.Origin{File: r.files.At(int(e.file)), Line: int(e.line)}
}

// Rewards returns the rewards of the groups, in the order of their numbers in groups.
func (r *Roster) Rewards(groups *keys.Keys) []reward.GroupRewards {
	ends := make([]int, groups.Len()) // initially where each group begins
	for i := range r.n {
		if g := int(r.entry(i).group) + 1; g < len(ends) {
			ends[g]++
		}
	}
	for g := 1; g < len(ends); g++ {
		ends[g] += ends[g-1]
	}
	all, ids := make([]reward.RolloutReward, r.n), string(r.ids)
	for i := range r.n {
		e := r.entry(i)
		all[ends[e.group]] = reward.RolloutReward{ID: id(r, i, ids), Reward: e.reward, Excluded: r.reasons.At(int(e.excluded)), Baseline: e.baseline,
			Rows: int(e.rows), MaskedRows: int(e.masked), Length: e.length}
		ends[e.group]++
	}
	out, from := make([]reward.GroupRewards, len(ends)), 0
	for g, end := range ends {
		out[g] = reward.GroupRewards{Key: groups.At(g), Rollouts: all[from:end:end]}
		from = end
	}
	return out
}

// header begins a packed roster; a row for each rollout follows.
type header struct {
	Files, Groups []string
	Rows          int
}

// row is a rollout, with the numbers of its group and file, and its line.
type row struct {
	Group, File, Line int32
	ID, Excluded      string
	Reward, Baseline  uint64 // IEEE 754 bits
	Counts            [3]int
}

// Pack encodes r and the keys of its groups.
func (r *Roster) Pack(groups *keys.Keys) []byte {
	h := header{Files: names(&r.files), Groups: names(groups), Rows: r.n}
	return packed.Write(func(w io.Writer) error {
		enc := gob.NewEncoder(w)
		err := enc.Encode(&h)
		for i := range r.n {
			e := r.entry(i)
			err = cmp.Or(err, enc.Encode(&row{e.group, e.file, e.line, string(id(r, i, r.ids)), r.reasons.At(int(e.excluded)),
				math.Float64bits(e.reward), math.Float64bits(e.baseline), [3]int{int(e.rows), int(e.masked), e.length}}))
		}
		return err
	})
}

func names(k *keys.Keys) (out []string) {
	for i := range k.Len() {
		out = append(out, k.At(i))
	}
	return out
}

// Unpack decodes what Pack wrote; ok is false if the data is damaged.
func Unpack(b []byte) (r Roster, groups keys.Keys, ok bool) {
	dec := gob.NewDecoder(packed.Reader(b))
	var h header
	if dec.Decode(&h) != nil {
		return Roster{}, groups, false
	}
	for _, key := range h.Groups {
		groups.Add(key)
	}
	for range h.Rows {
		var x row
		if dec.Decode(&x) != nil || uint32(x.Group) >= uint32(groups.Len()) || uint32(x.File) >= uint32(len(h.Files)) {
			return Roster{}, groups, false
		}
		r.Add(int(x.Group), rollout.Origin{File: h.Files[x.File], Line: int(x.Line)}, reward.RolloutReward{ID: x.ID, Excluded: x.Excluded,
			Reward: math.Float64frombits(x.Reward), Baseline: math.Float64frombits(x.Baseline), Rows: x.Counts[0], MaskedRows: x.Counts[1], Length: x.Counts[2]})
	}
	return r, groups, dec.Decode(new(row)) == io.EOF
}
