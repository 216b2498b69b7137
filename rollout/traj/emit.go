package traj

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

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

// note adds a remark to the next rollout emitted.
func (j *fileReader) note(code string, message rollout.Index, format string, args ...any) {
	j.notes = append(j.notes, rollout.Note{Code: code, Message: message, Text: fmt.Sprintf(format, args...)})
}

// noIndex is the Index of a rollout whose dump does not number it.
const noIndex = -1

// emit completes a rollout and hands it to the consumer: origin, id, group and
// index, joined rewards, duplicates, validation. An importer sets Index to
// noIndex when the data has none.
func (j *fileReader) emit(r *rollout.Rollout) error {
	rd, task := j.r, j.task
	j.task = [16]byte{}
	if err := j.reread(); err != nil {
		return err
	}
	if !j.joined && !j.imp.own && j.imp.name != "native" {
		if err := j.nativeSaid(r); err != nil {
			return err
		}
	}
	if !j.joined {
		if took, err := j.collect(r); took {
			return err
		}
	}
	index := j.count
	j.count++
	if r.Instance == "" {
		r.Instance = j.key
	}
	r.Notes = append(r.Notes, j.notes...)
	j.notes = nil
	if r.Origin.Format == "" {
		r.Origin = rollout.Origin{File: j.file.Name, Line: j.where.Line, Index: index, Format: j.imp.name}
	}
	here := rollout.Origin{File: j.file.Name, Line: j.where.Line, Index: index, Format: j.imp.name}
	if len(r.Messages) > rd.opt.Limits.Messages {
		return rollout.Errorf(rollout.KindLimit, j.where, "%d messages, at most %d are read", len(r.Messages), rd.opt.Limits.Messages)
	}
	if here.Format != "native" {
		if !j.joined {
			compact(r.Turns)
			settleSampling(r)
		}
		promptless(r)
		if err := j.givenSystem(r); err != nil {
			return err
		}
		responseIDs(r)
	}
	if rd.opt.Dedup {
		d := Digest(r)
		if first, dup := rd.seen[d]; dup {
			rd.report.Duplicates++
			if len(rd.report.Repeats) < maxListed {
				rd.report.Repeats = append(rd.report.Repeats, Repeat{Of: first, This: here})
			}
			return nil
		}
		rd.seen[d] = here
	}
	rd.identify(r, j.file.Rel, here)
	joined := rd.report.Joined
	if err := rd.join(r); err != nil {
		return err
	}
	name := r.Group
	rd.tellApart(r, task)
	if err := rd.group(r); err != nil {
		return err
	}
	if rd.opt.Strict {
		if err := r.Validate(); err != nil {
			return located(err, here)
		}
	}
	rd.report.Rollouts++
	rd.report.Formats[here.Format]++
	if rd.report.Joined > joined { // no other rollout takes that outcome
		meet(j, nil)
	} else {
		m := met{ID: r.ID, Group: r.Group, Index: r.Index}
		if rd.apart(name, task) {
			m.Name, m.Task = name, hex.EncodeToString(task[:])
		}
		meet(j, &m)
	}
	for i := range r.Turns {
		if r.Turns[i].Incomplete != "" {
			rd.report.Incomplete++
		}
	}
	if !rd.yield(r, nil) {
		return errStop
	}
	return nil
}

// promptless marks the turns of a record that begins with a reply. No model is
// called with nothing, so what it saw was not recorded, neither then nor at the
// turns whose history grew from there.
func promptless(r *rollout.Rollout) {
	plain := func(t *rollout.Turn) bool {
		return t.Context.Parts == nil && !t.Context.Unknown && !t.Prompt.Captured()
	}
	if len(r.Turns) == 0 || r.Turns[0].Message != 0 || !plain(&r.Turns[0]) {
		return
	}
	r.Notes = append(r.Notes, rollout.Note{Code: "prompt_not_recorded", Text: "the record begins with a reply: what the model was asked is not in it"})
	for i := range r.Turns {
		if plain(&r.Turns[i]) {
			r.Turns[i].Context.Unknown = true
		}
	}
}

// responseIDs takes ids that name no single response: some engines give an id
// twice in a run.
func responseIDs(r *rollout.Rollout) {
	if len(r.Turns) < 2 {
		return
	}
	seen, repeated := make(map[string]bool, len(r.Turns)), 0
	for i := range r.Turns {
		t := &r.Turns[i]
		if t.ID == "" {
			continue
		}
		if seen[t.ID] {
			t.ID = ""
			repeated++
			continue
		}
		seen[t.ID] = true
	}
	if repeated > 0 {
		r.Notes = append(r.Notes, rollout.Note{Code: "response_id_repeated", Text: fmt.Sprintf("%d responses have an id that an earlier one has; they are read as responses without one", repeated)})
	}
}

// compact stores full prompts against earlier turns.
func compact(turns []rollout.Turn) {
	captured := 0
	for i := range turns {
		if turns[i].Prompt.Captured() {
			captured++
		}
	}
	if captured < 2 {
		return
	}
	var x rollout.PromptIndex
	for i := range turns {
		turns[i].Prompt = x.Add(turns[i].Prompt.Add, turns[i].Output)
	}
}

func located(err error, at rollout.Origin) error {
	return &rollout.Error{Kind: rollout.KindInput, Where: rollout.Where{File: at.File, Line: at.Line}, Msg: err.Error()}
}

// identify gives the rollout an id that no other has. Ids are remembered by their
// hash, so that many rollouts need little memory; two ids of one hash would only
// cost the second its own name.
func (rd *Reader) identify(r *rollout.Rollout, rel string, at rollout.Origin) {
	if r.ID != "" && rd.newID(r.ID) {
		return
	}
	place := rel + "#" + strconv.Itoa(at.Index)
	if r.ID != "" && r.ID != place {
		r.Notes = append(r.Notes, rollout.Note{Code: "id_repeated", Text: fmt.Sprintf("the id %q of the data occurred before; file and index were taken", r.ID)})
	}
	for n, id := 1, place; ; n++ {
		if rd.newID(id) {
			r.ID = id
			return
		}
		if id = at.File + "#" + strconv.Itoa(at.Index); n > 1 { // equal names below different folders
			id += "@" + strconv.Itoa(n)
		}
	}
}

// newID remembers an id and reports whether it is new.
func (rd *Reader) newID(id string) bool {
	sum := maphash.String(rd.seed, id)
	if _, taken := rd.ids[sum]; taken {
		return false
	}
	rd.ids[sum] = struct{}{}
	return true
}

// taskOf digests what a data set says of a task, white space in between aside.
func taskOf(name string, of ...value) [16]byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q", name)
	for _, v := range of {
		b.WriteByte('\n')
		_ = json.Compact(&b, v.Clone()) // nothing of what is absent
	}
	d := sha256.Sum256(b.Bytes())
	return [16]byte(d[:16])
}

// tellApart gives the group of a task that only has a number in its data set a name
// of its own where a task of another data set had that number before.
func (rd *Reader) tellApart(r *rollout.Rollout, task [16]byte) {
	if !rd.apart(r.Group, task) {
		return
	}
	name := r.Group
	if k := rd.numberOf(name, task); k > 0 {
		r.Group += "@" + strconv.Itoa(k+1)
		r.Notes = append(r.Notes, rollout.Note{Code: "other_task", Text: fmt.Sprintf("%s was another task before; the group is %s", name, r.Group)})
	}
}

// apart says whether tasks of one group name are told apart.
func (rd *Reader) apart(name string, task [16]byte) bool {
	return rd.opt.GroupBy == "" && name != "" && task != [16]byte{}
}

// numberOf counts the tasks that had the name of a group before this one.
func (rd *Reader) numberOf(name string, task [16]byte) int {
	k := slices.Index(rd.tasks[name], task)
	if k < 0 {
		k = len(rd.tasks[name])
		rd.tasks[name] = append(rd.tasks[name], task)
	}
	return k
}

func (rd *Reader) indicesOf(group string) *indices {
	x := rd.groups[group]
	if x == nil {
		x = &indices{}
		rd.groups[group] = x
	}
	return x
}

func (rd *Reader) group(r *rollout.Rollout) error {
	want := r.Index
	switch key := rd.opt.GroupBy; key {
	case "":
		if r.Group == "" {
			r.Group, want = r.Instance, noIndex
		}
	case "none":
		r.Group, want = "", noIndex
	case "instance":
		r.Group, want = r.Instance, noIndex
	case "file":
		r.Group, want = r.Origin.File, noIndex
	case "prompt":
		r.Group, want = promptKey(r), noIndex
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
		r.Group, want = s, noIndex
	}
	if r.Group == "" {
		r.Group = r.ID
	}
	got, free := rd.indicesOf(r.Group).take(want)
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
	d := digest(r.Messages[:n])
	return "prompt-" + hex.EncodeToString(d[:8])
}

// Digest is the content of a rollout in 16 bytes: roles, texts, and names and
// arguments of tool calls. Ids, times and outcomes do not count, so a rollout
// that was logged twice has the same digest.
func Digest(r *rollout.Rollout) [16]byte {
	if r == nil {
		return digest(nil)
	}
	return digest(r.Messages)
}

func digest(messages []rollout.Message) [16]byte {
	h := sha256.New()
	var size [8]byte
	put := func(s string) {
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	for i := range messages {
		m := &messages[i]
		put(string(m.Role))
		put(m.Content)
		put(strconv.Itoa(len(m.ToolCalls)))
		for _, c := range m.ToolCalls {
			put(c.Name)
			put(c.Arguments)
		}
	}
	var out [16]byte
	copy(out[:], h.Sum(nil))
	return out
}
