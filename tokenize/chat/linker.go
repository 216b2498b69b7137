package chat

import (
	"sort"
	"sync"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// link is a tool message that holds the name of the function whose call it answers.
type link struct {
	own   *Field // the name in the tool message
	place int
}

// linked holds the links among messages. They are computed on first use, since few templates need them.
type linked struct {
	messages []value.Value
	once     sync.Once
	list     []link           // ordered by place
	unnamed  int              // place of the first message that answers a call but does not name it
	byCall   map[*Field][]int // name field of a call -> indices into list
	byOwn    map[*Field]int
}

// named reports whether, among the first n messages, at least one tool message carries the id of an earlier call and
// the name of its function, and every tool message with such an id carries the name too.
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

// link attributes a function name next to the text of a tool message to that message, if the template fetched it from
// the call that the message answers: the model reads it there and did not sample it. The message holds the same name,
// and a template that finds no call writes that. A template that writes the name of the message itself is left alone.
//
// link changes runs, the runs of a rendering of c.
func (l *linked) link(c *Conversation, runs []value.Run, extents []Extent) {
	answered := func(f *Field) []int { // the links of a call's name, nil if no message of c answers the call
		list := l.byCall[f]
		if len(list) > 0 && l.list[list[0]].place >= c.Len() {
			return nil
		}
		return list
	}
	// first is the first run of each answered call's name and of each tool message's own name.
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
	again := func(i int) bool { // whether run i repeats the name of an answered call
		at, ok := first[runs[i].F]
		return ok && at < i && answered(runs[i].F) != nil
	}
	took := map[int]bool{} // links whose name was found
	for i := range runs {
		if runs[i].F.Key != "name" || !again(i) {
			continue
		}
		// A repeated call name belongs to the message that answers the call if that message's extent wrote it, or if
		// the next data after it is of that message or, where that message has no text, of a later one.
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

// extentOf returns the index of the extent that contains the start of r, or -1.
func extentOf(extents []Extent, r value.Run) int {
	k := sort.Search(len(extents), func(i int) bool { return extents[i].End > int(r.At) })
	if k == len(extents) || extents[k].Start > int(r.At) {
		return -1
	}
	return k
}
