package chat

import (
	"sort"
	"sync"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// link is a tool message that names the function of the call that it answers.
type link struct {
	own   *Field // the name in the message
	place int
}

// linked are the links among messages, which few templates ask for.
type linked struct {
	messages []value.Value
	once     sync.Once
	list     []link           // by place
	unnamed  int              // the first message that answers a call without its name
	byCall   map[*Field][]int // into list
	byOwn    map[*Field]int
}

// named reports whether some of the first n messages are tool messages that carry the id
// of an earlier call and the name of its function, and none carries the id alone.
func (l *linked) named(n int) bool {
	l.once.Do(l.find)
	return n <= l.unnamed && len(l.list) > 0 && l.list[0].place < n
}

func (l *linked) find() {
	l.unnamed = len(l.messages)
	l.byCall, l.byOwn = map[*Field][]int{}, map[*Field]int{}
	names := map[string]*value.Str{}
	str := func(d *value.Dict, key string) *value.Str {
		if d == nil {
			return nil
		}
		s, _ := d.GetString(key).(*value.Str)
		return s
	}
	for i, m := range l.messages {
		d := m.(*value.Dict)
		id, own := str(d, "tool_call_id"), str(d, "name")
		if id != nil && names[id.S] != nil {
			call := names[id.S]
			if own == nil || own.S != call.S {
				l.unnamed = i
				return
			}
			l.byCall[call.F] = append(l.byCall[call.F], len(l.list))
			l.byOwn[own.F] = len(l.list)
			l.list = append(l.list, link{own.F, i})
		}
		calls, _ := d.GetString("tool_calls").(*value.List)
		if calls == nil {
			continue
		}
		for _, c := range calls.Items {
			call, _ := c.(*value.Dict)
			if call == nil {
				continue
			}
			fn, _ := call.GetString("function").(*value.Dict)
			if id, name := str(call, "id"), str(fn, "name"); id != nil && name != nil && name.S != "" {
				names[id.S] = name
			}
		}
	}
}

// link gives a function name that stands beside the text of a tool message to
// that message, where the template fetched it from the call that the message
// answers: it is part of what the model reads there, not of what it sampled. The
// message holds the same name, so the bytes are its own, too: a template that finds
// no call writes them as well. A template that writes the name of the message itself
// fetches nothing.
//
// runs are those of a rendering of c, which it changes.
func (l *linked) link(c *Conversation, runs []value.Run, extents []Extent) {
	answered := func(f *Field) []int { // the links of a call's name, if there are any so far
		list := l.byCall[f]
		if len(list) > 0 && l.list[list[0]].place >= c.Len() {
			return nil
		}
		return list
	}
	// The first run of a call's name, or of a message's own.
	first := map[*Field]int{}
	for i := range runs {
		f := runs[i].F
		if f.Key != "name" {
			continue
		}
		_, own := l.byOwn[f]
		if _, again := first[f]; !again && (own || answered(f) != nil) {
			first[f] = i
		}
	}
	again := func(i int) bool { // a call's name that was written before
		at, ok := first[runs[i].F]
		return ok && at < i && answered(runs[i].F) != nil
	}
	took := map[int]bool{} // links that have their name
	for i := range runs {
		if runs[i].F.Key != "name" || !again(i) {
			continue
		}
		// The text of a call that was written before belongs to the message that answers
		// it, if that wrote it, or if it stands before data of that message, or of a later
		// one where that has no text.
		at := extentOf(extents, runs[i])
		next := i + 1
		for next < len(runs) && again(next) && runs[next].F != runs[i].F && extentOf(extents, runs[next]) == at {
			next++ // the name of a call whose result is empty
		}
		for _, k := range answered(runs[i].F) {
			link := l.list[k]
			if _, own := first[link.own]; own || took[k] || link.place >= c.Len() {
				continue
			}
			if at >= 0 && c.Place(extents[at].Message) == link.place || next == len(runs) || c.Place(int(runs[next].F.Message)) >= link.place {
				runs[i].F, took[k] = link.own, true
				break
			}
		}
	}
}

// extentOf returns the number of the extent that a run lies in, or -1.
func extentOf(extents []Extent, r value.Run) int {
	k := sort.Search(len(extents), func(i int) bool { return extents[i].End > int(r.At) })
	if k == len(extents) || extents[k].Start > int(r.At) {
		return -1
	}
	return k
}
