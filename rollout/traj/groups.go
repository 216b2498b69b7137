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

// registry assigns ids, groups and indices in groups to rollouts.
type registry struct {
	groupBy string // Options.GroupBy
	ids     keys.Table[struct{}]
	seed    maphash.Seed // hash seed for the paths of unread files
	groups  keys.Keys
	next    []int                 // by group number: all indices below it are taken
	ahead   map[placed]struct{}   // taken indices above next
	tasks   map[string][][16]byte // group name → its tasks, in order of appearance
}

func newRegistry(groupBy string) registry {
	return registry{groupBy: groupBy, seed: maphash.MakeSeed(), ahead: map[placed]struct{}{}, tasks: map[string][][16]byte{}}
}

// identify gives the rollout a unique id. Ids are remembered by their hash, which keeps
// memory small for many rollouts; in a hash collision the second rollout only loses its own
// name.
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
		if id = at.File + "#" + strconv.Itoa(at.Index); n > 1 { // equal paths below different folders
			id += "@" + strconv.Itoa(n)
		}
	}
}

// newID remembers an id and reports whether it is new.
func (x *registry) newID(id string) bool { return x.ids.Add(id, struct{}{}) }

// tellTasksApart renames the group of a task known only by its number in a data set, if a
// task of another data set had the same number before.
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

// apart reports whether tasks with this group name are told apart.
func (x *registry) apart(name string, task [16]byte) bool {
	return x.groupBy == "" && name != "" && task != [16]byte{}
}

// numberOf returns the number of other tasks that had this group name before the task.
func (x *registry) numberOf(name string, task [16]byte) int {
	k := slices.Index(x.tasks[name], task)
	if k < 0 {
		k = len(x.tasks[name])
		x.tasks[name] = append(x.tasks[name], task)
	}
	return k
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
	got, free := x.take(r.Group, want)
	if !free {
		r.Notes = append(r.Notes, rollout.Note{Code: "index_repeated", Text: fmt.Sprintf("index %d of group %q occurred before; %d was taken", want, r.Group, got)})
	}
	r.Index = got
	return nil
}

// promptKey returns a digest of the messages before the first sampled one, or of the ids of the
// first prompt where no message is recorded.
func promptKey(r *rollout.Rollout) string {
	n := 0
	for n < len(r.Messages) && (r.Messages[n].Role != rollout.RoleAssistant || r.Messages[n].Sampled != rollout.SampledByPolicy) {
		n++
	}
	messages := r.Messages[:n]
	if n == 0 && len(r.Turns) > 0 && r.Turns[0].Prompt.Captured() {
		messages = []rollout.Message{{Content: fmt.Sprint(r.Turns[0].Prompt.Add)}}
	}
	d := format.Digest(messages)
	return "prompt-" + hex.EncodeToString(d[:8])
}

// placed is an index in a group, the group given by its number.
type placed struct{ group, index int }

// take reserves index want in a group, or the next free index if want is taken or negative.
// met is false if want was taken. Groups numbered in order, nearly all of them, need no
// memory per rollout.
func (x *registry) take(group string, want int) (got int, met bool) {
	g, added := x.groups.Add(group)
	if added {
		x.next = append(x.next, 0)
	}
	next := &x.next[g]
	got, met = want, true
	if _, taken := x.ahead[placed{g, want}]; taken || want < *next {
		got, met = *next, want < 0
	}
	if got > *next {
		x.ahead[placed{g, got}] = struct{}{}
		return got, met
	}
	for *next++; ; *next++ {
		if _, taken := x.ahead[placed{g, *next}]; !taken {
			return got, met
		}
		delete(x.ahead, placed{g, *next})
	}
}
