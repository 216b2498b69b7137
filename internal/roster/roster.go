// Package roster writes down which rollouts a run read, in their order, with the rewards
// of their groups: some twenty bytes for a rollout where JSON takes two hundred, for a
// state that is made and read as a whole.
package roster

import (
	"encoding/binary"
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

// Pack writes r and the rewards of its rollouts: first the files and the keys of the
// groups, then the rollouts.
func (r *Roster) Pack(groups []reward.GroupRewards) []byte {
	dst := binary.AppendUvarint(nil, uint64(len(r.Files)))
	text := func(s string) { dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...) }
	for _, file := range r.Files {
		text(file)
	}
	dst = binary.AppendUvarint(dst, uint64(len(groups)))
	for i := range groups {
		text(groups[i].Key)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Entries)))
	next := make([]int, len(groups))
	line := int64(0)
	for _, e := range r.Entries {
		r := &groups[e.Group].Rollouts[next[e.Group]]
		next[e.Group]++
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(e.Group)), uint64(e.File))
		dst = binary.AppendVarint(dst, int64(e.Line)-line)
		line = int64(e.Line)
		text(r.ID)
		text(r.Excluded)
		for _, v := range []float64{r.Reward, r.Baseline} { // mostly a short fraction, whose last bits are zero
			dst = binary.AppendUvarint(dst, reverse(math.Float64bits(v)))
		}
		for _, n := range []int{r.Rows, r.MaskedRows, r.Length} {
			dst = binary.AppendVarint(dst, int64(n))
		}
	}
	return packed.Bytes(dst)
}

// reverse turns the bytes of v around.
func reverse(v uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return binary.BigEndian.Uint64(b[:])
}

// Unpack reads what Pack wrote; ok is false where that is damaged.
func Unpack(b []byte) (r Roster, groups []reward.GroupRewards, ok bool) {
	b, whole := packed.Read(b)
	damaged := !whole
	take := func(n int) []byte {
		if damaged = damaged || n <= 0 || n > len(b); damaged {
			return nil
		}
		out := b[:n]
		b = b[n:]
		return out
	}
	unsigned := func() uint64 {
		v, n := binary.Uvarint(b)
		take(n)
		return v
	}
	signed := func() int64 {
		v, n := binary.Varint(b)
		take(n)
		return v
	}
	text := func() string {
		n := unsigned()
		if n == 0 || n > uint64(len(b)) {
			damaged = damaged || n > 0
			return ""
		}
		return string(take(int(n)))
	}
	count := func() int { // each takes a byte at least
		n := unsigned()
		if damaged = damaged || n > uint64(len(b)); damaged {
			return 0
		}
		return int(n)
	}
	r.Files = make([]string, count())
	for i := range r.Files {
		r.Files[i] = text()
	}
	groups = make([]reward.GroupRewards, count())
	for i := range groups {
		groups[i].Key = text()
	}
	r.Entries = make([]Entry, count())
	line := int64(0)
	for i := range r.Entries {
		group, file := unsigned(), unsigned()
		line += signed()
		if damaged = damaged || group >= uint64(len(groups)) || file >= uint64(len(r.Files)); damaged {
			return Roster{}, nil, false
		}
		r.Entries[i] = Entry{int32(group), int32(file), int32(line)}
		one := reward.RolloutReward{ID: text(), Excluded: text()}
		one.Reward, one.Baseline = math.Float64frombits(reverse(unsigned())), math.Float64frombits(reverse(unsigned()))
		one.Rows, one.MaskedRows, one.Length = int(signed()), int(signed()), int(signed())
		groups[group].Rollouts = append(groups[group].Rollouts, one)
	}
	if damaged || len(b) > 0 {
		return Roster{}, nil, false
	}
	return r, groups, true
}
