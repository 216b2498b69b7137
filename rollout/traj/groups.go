package traj

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// registry gives rollouts their ids, their groups and their places in them.
type registry struct {
	groupBy string              // Options.GroupBy
	ids     map[uint64]struct{} // hashes
	seed    maphash.Seed        // of ids and of the paths of unread files
	groups  keys.Keys
	places  []indices             // by number in groups
	tasks   map[string][][16]byte // of a group name, in the order met
}

func newRegistry(groupBy string) registry {
	return registry{groupBy: groupBy, ids: map[uint64]struct{}{}, seed: maphash.MakeSeed(), tasks: map[string][][16]byte{}}
}

// identify gives the rollout an id that no other has. Ids are remembered by their
// hash, so that many rollouts need little memory; two ids of one hash would only
// cost the second its own name.
func (x *registry) identify(r *rollout.Rollout, rel string, at rollout.Origin) {
	if r.ID != "" && x.newID(r.ID) {
		return
	}
	place := rel + "#" + strconv.Itoa(at.Index)
	if r.ID != "" && r.ID != place {
		r.Notes = append(r.Notes, rollout.Note{Code: "id_repeated", Text: fmt.Sprintf("the id %q of the data occurred before; file and index were taken", r.ID)})
	}
	for n, id := 1, place; ; n++ {
		if x.newID(id) {
			r.ID = id
			return
		}
		if id = at.File + "#" + strconv.Itoa(at.Index); n > 1 { // equal names below different folders
			id += "@" + strconv.Itoa(n)
		}
	}
}

// newID remembers an id and reports whether it is new.
func (x *registry) newID(id string) bool {
	sum := maphash.String(x.seed, id)
	if _, taken := x.ids[sum]; taken {
		return false
	}
	x.ids[sum] = struct{}{}
	return true
}

// tellTasksApart gives the group of a task that only has a number in its data set a name
// of its own where a task of another data set had that number before.
func (x *registry) tellTasksApart(r *rollout.Rollout, task [16]byte) {
	if !x.apart(r.Group, task) {
		return
	}
	name := r.Group
	if k := x.numberOf(name, task); k > 0 {
		r.Group += "@" + strconv.Itoa(k+1)
		r.Notes = append(r.Notes, rollout.Note{Code: "other_task", Text: fmt.Sprintf("%s was another task before; the group is %s", name, r.Group)})
	}
}

// apart says whether tasks of one group name are told apart.
func (x *registry) apart(name string, task [16]byte) bool {
	return x.groupBy == "" && name != "" && task != [16]byte{}
}

// numberOf counts the tasks that had the name of a group before this one.
func (x *registry) numberOf(name string, task [16]byte) int {
	k := slices.Index(x.tasks[name], task)
	if k < 0 {
		k = len(x.tasks[name])
		x.tasks[name] = append(x.tasks[name], task)
	}
	return k
}

func (x *registry) indicesOf(group string) *indices {
	k, added := x.groups.Add(group)
	if added {
		x.places = append(x.places, indices{})
	}
	return &x.places[k]
}

func (x *registry) group(r *rollout.Rollout) error {
	want := r.Index
	switch key := x.groupBy; key {
	case "":
		if r.Group == "" {
			r.Group, want = r.Instance, format.NoIndex
		}
	case "none":
		r.Group, want = "", format.NoIndex
	case "instance":
		r.Group, want = r.Instance, format.NoIndex
	case "file":
		r.Group, want = r.Origin.File, format.NoIndex
	case "prompt":
		r.Group, want = promptKey(r), format.NoIndex
	default:
		name := strings.TrimPrefix(key, "metadata:")
		raw, ok := r.Metadata[name]
		if !ok {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: r.Origin.File, Line: r.Origin.Line, Rollout: r.ID, Field: "metadata." + name}, "there is no such key to group by").
				WithFix("its keys are %s", strings.Join(slices.Sorted(maps.Keys(r.Metadata)), ", "))
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		r.Group, want = s, format.NoIndex
	}
	if r.Group == "" {
		r.Group = r.ID
	}
	got, free := x.indicesOf(r.Group).take(want)
	if !free {
		r.Notes = append(r.Notes, rollout.Note{Code: "index_repeated", Text: fmt.Sprintf("index %d of group %q occurred before; %d was taken", want, r.Group, got)})
	}
	r.Index = got
	return nil
}

// promptKey digests the messages before the first sampled one.
func promptKey(r *rollout.Rollout) string {
	n := 0
	for n < len(r.Messages) && (r.Messages[n].Role != rollout.RoleAssistant || r.Messages[n].Sampled != rollout.SampledByPolicy) {
		n++
	}
	d := format.Digest(r.Messages[:n])
	return "prompt-" + hex.EncodeToString(d[:8])
}

// indices hands out places in one group. Groups that are numbered in order, which
// is nearly all, need no memory per rollout.
type indices struct {
	next  int              // every place below is taken
	ahead map[int]struct{} // taken places from next on
}

// take returns the place wanted, or the next free one when it is taken or
// negative, and whether the wish was met.
func (x *indices) take(want int) (got int, met bool) {
	got, met = want, true
	if _, taken := x.ahead[want]; taken || want < x.next {
		got, met = x.next, want < 0
	}
	if got > x.next {
		if x.ahead == nil {
			x.ahead = map[int]struct{}{}
		}
		x.ahead[got] = struct{}{}
		return got, met
	}
	for x.next++; ; x.next++ {
		if _, taken := x.ahead[x.next]; !taken {
			return got, met
		}
		delete(x.ahead, x.next)
	}
}
