// Package roster writes down which rollouts a run read, in their order, with the rewards
// of their groups: some twenty bytes for a rollout where JSON takes two hundred, for a
// state that is made and read as a whole.
package roster

import (
	"cmp"
	"encoding/gob"
	"io"
	"math"

	"github.com/turnpack/turnpack/internal/packed"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// Entry is a rollout: the next of a group, by the group's index, and where it was read,
// by the index of the file in Files and the line.
type Entry struct{ Group, File, Line int32 }

// Roster is the rollouts of a run in their order. The zero value is empty.
type Roster struct {
	Files   []string
	Entries []Entry
	file    map[string]int32
}

// Add adds the next rollout.
func (r *Roster) Add(group int, from rollout.Origin) {
	file, known := r.file[from.File]
	if !known {
		if r.file == nil {
			r.file = map[string]int32{}
		}
		file = int32(len(r.Files))
		r.file[from.File], r.Files = file, append(r.Files, from.File)
	}
	r.Entries = append(r.Entries, Entry{int32(group), file, int32(from.Line)})
}

// header is what a packed roster begins with; a row for each entry follows.
type header struct {
	Files, Groups []string
	Rows          int
}

// row is an entry with its reward.
type row struct {
	Entry
	ID, Excluded     string
	Reward, Baseline uint64 // bits
	Counts           [3]int
}

// Pack writes r and the rewards of its rollouts.
func (r *Roster) Pack(groups []reward.GroupRewards) []byte {
	h := header{Files: r.Files, Rows: len(r.Entries)}
	for i := range groups {
		h.Groups = append(h.Groups, groups[i].Key)
	}
	return packed.Write(func(w io.Writer) error {
		enc := gob.NewEncoder(w)
		err := enc.Encode(&h)
		next := make([]int, len(groups))
		for _, e := range r.Entries {
			r := &groups[e.Group].Rollouts[next[e.Group]]
			next[e.Group]++
			err = cmp.Or(err, enc.Encode(&row{e, r.ID, r.Excluded, math.Float64bits(r.Reward), math.Float64bits(r.Baseline), [3]int{r.Rows, r.MaskedRows, r.Length}}))
		}
		return err
	})
}

// Unpack reads what Pack wrote; ok is false where that is damaged.
func Unpack(b []byte) (r Roster, groups []reward.GroupRewards, ok bool) {
	dec := gob.NewDecoder(packed.Reader(b))
	var h header
	if dec.Decode(&h) != nil {
		return Roster{}, nil, false
	}
	r.Files, groups = h.Files, make([]reward.GroupRewards, len(h.Groups))
	for i, key := range h.Groups {
		groups[i].Key = key
	}
	for range h.Rows {
		var x row
		if dec.Decode(&x) != nil || uint32(x.Group) >= uint32(len(groups)) || uint32(x.File) >= uint32(len(r.Files)) {
			return Roster{}, nil, false
		}
		r.Entries = append(r.Entries, x.Entry)
		g := &groups[x.Group]
		g.Rollouts = append(g.Rollouts, reward.RolloutReward{ID: x.ID, Excluded: x.Excluded, Reward: math.Float64frombits(x.Reward), Baseline: math.Float64frombits(x.Baseline),
			Rows: x.Counts[0], MaskedRows: x.Counts[1], Length: x.Counts[2]})
	}
	return r, groups, dec.Decode(new(row)) == io.EOF
}
