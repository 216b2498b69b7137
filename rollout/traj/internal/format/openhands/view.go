package openhands

import (
	"slices"
	"strconv"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// eventView is what an OpenHands model sees of the events so far: all except calls without
// a result, until a condensation forgets some and inserts a summary. The rules are those of
// View and ConversationMemory in OpenHands (V0) and of View in the agent SDK.
type eventView struct {
	r       *rollout.Rollout
	entries []viewEntry
	events  map[int]int      // message → number of its events
	calls   map[string]int   // call id → message with the call
	results map[string][]int // call id → messages with its results
	open    map[int]int      // message → number of its calls without a result, never 0
	// said holds the message shown for a reply while none of its calls has a result; a
	// reply that is not in said is not shown.
	said map[int]*rollout.Message
	// batched is true for V0 records: a reply waits for the results of all its calls.
	batched bool
	// merges is true for records of the agent SDK since 1.31, whose events name their
	// parents: user messages next to each other are shown as one.
	merges   bool
	adjacent bool // there are such messages
	// rooted is true for V0 records with a system message: it and the first user message
	// are put back if they were forgotten.
	rooted    bool
	condensed bool
	branched  bool             // events before this one are on another branch
	lost      bool             // a condensation does not say what it forgot
	summary   *rollout.Message // of the last condensation with one, else nil
	at        int              // index of the summary among the entries
	summaryID string           // id by which the agent SDK forgets the summary
	// A thinking loop of the agent SDK is an action with thinking blocks and the actions
	// and results after it. loop is the number of the current one, from 1; 0 for none.
	loop  int
	loops []int // number of events per loop
}

// viewEntry is one event: an entry of the history.
type viewEntry struct {
	id      string
	message int              // −1 if the event has no message
	loop    int              // the thinking loop it belongs to, 0 for none
	summary *rollout.Message // a condensation's summary, instead of an event
}

func newEventView(r *rollout.Rollout) *eventView {
	return &eventView{r: r, events: map[int]int{}, calls: map[string]int{}, results: map[string][]int{}, open: map[int]int{}, said: map[int]*rollout.Message{}}
}

// add appends an event with its message, −1 for none.
func (x *eventView) add(id format.Value, message int) {
	x.entries = append(x.entries, viewEntry{id: format.Identifier(id), message: message, loop: x.loop})
	if x.loop > 0 {
		x.loops[x.loop-1]++
	}
	if message < 0 {
		return
	}
	x.events[message]++
	m := &x.r.Messages[message]
	x.adjacent = x.adjacent || (x.merges || x.rooted) && message > 0 && m.Role == rollout.RoleUser && x.r.Messages[message-1].Role == rollout.RoleUser
	if m.Role == rollout.RoleTool {
		x.results[m.ToolCallID] = append(x.results[m.ToolCallID], message)
		if call, made := x.calls[m.ToolCallID]; made {
			x.count(call)
		}
	}
	for _, c := range m.ToolCalls {
		x.calls[c.ID] = message
	}
	x.count(message)
}

// think starts a thinking loop.
func (x *eventView) think() {
	x.loops = append(x.loops, 0)
	x.loop = len(x.loops)
}

// count updates the number of a message's calls without a result.
func (x *eventView) count(message int) {
	n := 0
	for _, c := range x.r.Messages[message].ToolCalls {
		if len(x.results[c.ID]) == 0 {
			n++
		}
	}
	if x.open[message] = n; n == 0 {
		delete(x.open, message)
	}
}

// condense applies a condensation. args hold forgotten_event_ids, or the first and last of
// a range of numbered events, and a summary with its index in the resulting view.
func (x *eventView) condense(args format.Value) {
	x.condensed = true
	forgotten := map[string]bool{}
	ids := args.Get("forgotten_event_ids")
	first, hasFirst := args.Get("forgotten_events_start_id").Int()
	last, hasLast := args.Get("forgotten_events_end_id").Int()
	switch {
	case ids.Kind() == jsonscan.Array:
		for _, id := range ids.Items() {
			forgotten[format.Identifier(id)] = true
		}
	case !hasFirst || !hasLast:
		x.lost = true
		return
	}
	x.entries = slices.DeleteFunc(x.entries, func(e viewEntry) bool {
		n, err := strconv.Atoi(e.id)
		inRange := hasFirst && hasLast && err == nil && first <= n && n <= last
		return forgotten[e.id] || inRange
	})
	if forgotten[x.summaryID] {
		x.summary = nil
	}
	text, ok := args.Get("summary").Text()
	at, placed := args.Get("summary_offset").Int()
	if !ok || !placed {
		return // the previous summary stays
	}
	// There is one summary at a time: a new one covers the content of the previous one.
	x.summary, x.at = &rollout.Message{Role: rollout.RoleUser, Content: text}, max(at, 0)
	x.summaryID = format.Identifier(args.Get("id")) + "-summary"
}

func (x *eventView) noteCondensed(in *format.File) {
	at := rollout.At(len(x.r.Messages))
	if x.lost {
		in.Note("context_lost", at, "the history was condensed here, and the record does not tell what was forgotten: what the model saw afterwards is not known")
		return
	}
	in.Note("condensed", at, "the history was condensed here: the turns after it see what was left, and the summary")
}

// context returns the context of the next call.
func (x *eventView) context() rollout.Context {
	if !x.condensed && !x.branched && !x.adjacent && len(x.open) == 0 {
		return rollout.Context{}
	}
	if x.lost || x.branched {
		return rollout.Context{Unknown: true}
	}
	entries := x.entries
	if x.summary != nil {
		entries = slices.Insert(slices.Clone(entries), min(x.at, len(entries)), viewEntry{message: unseen, summary: x.summary})
	}
	if x.rooted {
		entries = x.putBack(entries)
	}
	left := make([]int, len(x.loops)) // shown events per loop
	kept := map[int]int{}             // message → remaining events
	for _, e := range entries {
		kept[e.message]++
	}
	var parts []rollout.ContextPart
	shown := map[int]bool{} // a reply of several events is shown once
	show := func(k int) {
		if !shown[k] {
			shown[k] = true
			parts = format.AppendRange(parts, k)
		}
	}
	for _, e := range entries {
		switch {
		case e.summary != nil:
			at := 0
			if n := len(parts); n > 0 {
				at = parts[n-1].To
			}
			parts = append(parts, rollout.ContextPart{From: at, To: at, Message: e.summary})
		case e.message < 0:
		default:
			whole, known := x.paired(e.message, kept)
			if !known {
				return rollout.Context{Unknown: true}
			}
			if whole && e.loop > 0 {
				left[e.loop-1]++
			}
			k, m := e.message, &x.r.Messages[e.message]
			switch said := x.said[k]; {
			case whole && x.batched && len(m.ToolCalls) > 0: // shown with its first result
			case whole:
				if call, made := x.calls[m.ToolCallID]; made && x.batched {
					show(call)
				}
				show(k)
			case said != nil && !shown[k]:
				shown[k] = true
				parts = append(parts, rollout.ContextPart{From: k, To: k + 1, Message: said})
			}
		}
	}
	for i, n := range left {
		if n > 0 && n < x.loops[i] { // versions differ: some show the rest of a loop, others all of a loop or nothing
			return rollout.Context{Unknown: true}
		}
	}
	if parts == nil {
		return rollout.Context{Unknown: true}
	}
	if x.merges || x.rooted {
		parts = x.merged(parts)
	}
	return rollout.Context{Parts: parts}
}

// merged returns the parts with user messages next to each other as one or, in V0, with an
// empty line before the later ones.
func (x *eventView) merged(parts []rollout.ContextPart) []rollout.ContextPart {
	var out []rollout.ContextPart
	var last *rollout.Message // the last message shown
	show := func(p rollout.ContextPart, m *rollout.Message) {
		n, again := len(out)-1, last != nil && last.Role == rollout.RoleUser && m.Role == rollout.RoleUser
		if again && x.rooted {
			apart := *m
			apart.Content, p.Message = "\n\n"+m.Content, &apart
		}
		if !again || x.rooted {
			if last = m; p.Message == nil {
				out = format.AppendRange(out, p.From)
			} else {
				out = append(out, p)
			}
			return
		}
		both := rollout.Message{Role: rollout.RoleUser}
		for _, u := range []*rollout.Message{last, m} {
			if u.Parts == nil {
				format.AddText(&both, u.Content)
			}
			format.AddParts(&both, u.Parts...)
		}
		if last = &both; out[n].Message == nil {
			k := out[n].To - 1
			if out[n].To = k; out[n].From == k {
				out = out[:n]
			}
			out = append(out, rollout.ContextPart{From: k, To: k + 1})
			n = len(out) - 1
		}
		out[n].Message, out[n].To = last, max(out[n].To, p.To)
	}
	for _, p := range parts {
		if p.Message != nil {
			show(p, p.Message)
			continue
		}
		for k := p.From; k < p.To; k++ {
			show(rollout.ContextPart{From: k, To: k + 1}, &x.r.Messages[k])
		}
	}
	return out
}

// task returns the index of the first user message, −1 if there is none.
func (x *eventView) task() int {
	return slices.IndexFunc(x.r.Messages, func(m rollout.Message) bool { return m.Role == rollout.RoleUser })
}

// putBack returns the entries with the system message first, and with the first user
// message after it where no user message is second.
func (x *eventView) putBack(entries []viewEntry) []viewEntry {
	holds := func(k int) bool {
		return slices.ContainsFunc(entries, func(e viewEntry) bool { return e.message == k })
	}
	if !holds(0) {
		entries = slices.Insert(slices.Clone(entries), 0, viewEntry{message: 0})
	}
	user := len(entries) > 1 && entries[1].message >= 0 && x.r.Messages[entries[1].message].Role == rollout.RoleUser
	if k := x.task(); k >= 0 && !holds(k) && !user {
		entries = slices.Insert(slices.Clone(entries), 1, viewEntry{message: k})
	}
	return entries
}

// paired reports whether a message is shown as a whole: a result without its call, and a
// reply without any of its results, are not. known is false if versions differ: for a reply
// of which a part was forgotten and, in the agent SDK, for one of which only some calls
// have results.
func (x *eventView) paired(k int, kept map[int]int) (whole, known bool) {
	m := &x.r.Messages[k]
	if m.Role == rollout.RoleTool {
		call, made := x.calls[m.ToolCallID]
		return made && kept[call] > 0 && x.open[call] == 0, true
	}
	if open := x.open[k]; open > 0 {
		return false, x.batched || open == len(m.ToolCalls)
	}
	if kept[k] < x.events[k] {
		return false, false
	}
	recorded, left := 0, 0
	for _, c := range m.ToolCalls {
		for _, i := range x.results[c.ID] {
			recorded++
			if kept[i] > 0 {
				left++
			}
		}
	}
	return recorded == 0 || left > 0, left == 0 || left == recorded
}
