package chat

import (
	"math"
	"sort"
	"sync"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// link is a tool message that names the function of the call that it answers.
type link struct {
	call, own *Field
	place     int
}

// linked are the links among messages, which few templates ask for.
type linked struct {
	messages []value.Value
	once     sync.Once
	list     []link // by place
	unnamed  int    // the first message that answers a call without its name
}

// links returns the tool messages that carry the id of an earlier call and the
// name of its function; none, if one carries the id alone.
func (c *Conversation) links() []link {
	l := c.linked
	if l == nil {
		return nil
	}
	l.once.Do(l.find)
	if c.Len() > l.unnamed {
		return nil
	}
	k := sort.Search(len(l.list), func(i int) bool { return l.list[i].place >= c.Len() })
	return l.list[:k:k]
}

func (l *linked) find() {
	l.unnamed = len(l.messages)
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
			l.list = append(l.list, link{call.F, own.F, i})
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

// linker gives a function name that stands beside the text of a tool message to
// that message, where the template fetched it from the call that the message
// answers: it is part of what the model reads there, not of what it sampled. The
// message holds the same name, so the bytes are its own, too: a template that finds
// no call writes them as well. Where any message that answers a call lacks the name,
// names are the calls'. A template that writes the name of the message itself fetches
// nothing.
type linker struct {
	c      *Conversation
	runs   []value.Run // with the names given
	links  []link
	byCall map[*Field][]int // into links
	byOwn  map[*Field]int
	took   []int          // the run of each link, -1 for none yet
	first  map[*Field]int // the first run of a call's text, or of a message's own name
	seen   []*Field       // the keys of first, by run
	order  []int          // the links that took a run, by run
}

// link makes runs of raw, a rendering of c, which begins with the same from runs as
// the time before. It returns the first byte whose origin differs from that time's.
func (l *linker) link(c *Conversation, raw []value.Run, extents []Extent, from int) (kept int) {
	links := c.links()
	if len(links) < len(l.links) || len(l.links) == 0 && len(links) > 0 { // there may be any before
		*l, from = linker{runs: l.runs}, 0
	}
	l.c = c
	l.add(links)
	for from > 0 { // what find looked at behind a run may be another now
		if from--; !l.again(raw, from) {
			break
		}
	}
	for k := len(l.seen); k > 0 && l.first[l.seen[k-1]] >= from; k = len(l.seen) {
		delete(l.first, l.seen[k-1])
		l.seen = l.seen[:k-1]
	}
	for k := len(l.order); k > 0 && l.took[l.order[k-1]] >= from; k = len(l.order) {
		l.took[l.order[k-1]] = -1
		l.order = l.order[:k-1]
	}
	for i := from; i < len(raw); i++ {
		f := raw[i].F
		_, call := l.byCall[f]
		k, own := l.byOwn[f]
		if _, again := l.first[f]; again || !call && !own {
			continue
		}
		if own && l.took[k] >= 0 { // it is its own after all
			runs := l.runs
			*l = linker{runs: runs}
			return l.link(c, raw, extents, 0)
		}
		l.first[f] = i
		l.seen = append(l.seen, f)
	}
	kept = math.MaxInt
	old := len(l.runs)
	for i := from; i < len(raw); i++ {
		run := raw[i]
		if k := l.find(raw, extents, i); k >= 0 {
			run.F, l.took[k] = l.links[k].own, i
			l.order = append(l.order, k)
		}
		if i >= len(l.runs) {
			l.runs = append(l.runs, run)
			continue
		}
		if i < old && l.runs[i] != run {
			kept = min(kept, int(run.At), int(l.runs[i].At))
		}
		l.runs[i] = run
	}
	if len(raw) < old {
		kept = min(kept, int(l.runs[len(raw)].At))
	}
	l.runs = l.runs[:len(raw)]
	return kept
}

// add takes down the links that are new.
func (l *linker) add(links []link) {
	if l.first == nil {
		l.byCall, l.byOwn, l.first = map[*Field][]int{}, map[*Field]int{}, map[*Field]int{}
	}
	for k := len(l.links); k < len(links); k++ {
		l.byCall[links[k].call] = append(l.byCall[links[k].call], k)
		l.byOwn[links[k].own] = k
		l.took = append(l.took, -1)
	}
	l.links = links
}

// find returns the link that takes run i, or -1: the text of a call, not for the
// first time, that the message which answers it wrote, or that stands in front of data
// of that message, or of a later one if that has no text.
func (l *linker) find(raw []value.Run, extents []Extent, i int) int {
	links := l.byCall[raw[i].F]
	if len(links) == 0 || l.first[raw[i].F] == i {
		return -1
	}
	at := extentOf(extents, raw[i])
	next := i + 1
	for next < len(raw) && l.again(raw, next) && raw[next].F != raw[i].F && extentOf(extents, raw[next]) == at {
		next++ // the name of a call whose result is empty
	}
	for _, k := range links {
		_, own := l.first[l.links[k].own]
		if l.took[k] >= 0 || own {
			continue
		}
		if m := l.links[k].place; at >= 0 && l.c.at(int32(extents[at].Message)) == m || next == len(raw) || l.c.at(raw[next].F.Message) >= m {
			return k
		}
	}
	return -1
}

// again reports whether run i writes the text of a call that was written before.
func (l *linker) again(raw []value.Run, i int) bool {
	first, ok := l.first[raw[i].F]
	return ok && first < i && len(l.byCall[raw[i].F]) > 0
}

// extentOf returns the number of the extent that a run lies in, or -1.
func extentOf(extents []Extent, r value.Run) int {
	k := sort.Search(len(extents), func(i int) bool { return extents[i].End > int(r.At) })
	if k == len(extents) || extents[k].Start > int(r.At) {
		return -1
	}
	return k
}
