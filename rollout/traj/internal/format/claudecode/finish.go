package claudecode

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// Finish emits a rollout for each thread that has replies.
func (x *run) Finish() error {
	session := cmp.Or(x.about["session"], x.about["session_id"])
	for _, t := range x.threads {
		if len(t.r.Messages) == 0 {
			continue
		}
		r := t.r
		if t.agent == "" {
			r.ID, r.Status, r.ExitStatus = session, x.status, x.exit
		} else {
			r.ID = session + "/" + t.agent
			format.KeepText(&r.Metadata, "parent_session", session)
			format.KeepText(&r.Metadata, "agent", t.agent)
		}
		for _, key := range []string{"version", "cwd", "git_branch"} {
			if s := x.about[key]; s != "" {
				format.KeepText(&r.Metadata, key, s)
			}
		}
		if err := x.turns(t); err != nil {
			if err = x.in.Failed(err); err != nil {
				return err
			}
			continue
		}
		x.in.NoteHidden(r)
		if t.attachments > 0 {
			x.in.Note("attachments_not_shown", 0, "%d attachments (reminders, edited files, lists of skills) were shown to the model in words that the session does not hold", t.attachments)
		}
		x.in.NoteParts(r)
		x.in.UnlinkResults(r)
		if err := x.in.Failed(x.in.Emit(r)); err != nil {
			return err
		}
	}
	return nil
}

// turns builds the replies of a thread from their blocks, and its turns.
func (x *run) turns(t *thread) error {
	r := t.r
	var doc jsonscan.Doc
	lost := -1
	for _, p := range t.order {
		body, err := doc.Parse(format.Array(p.blocks), jsonscan.Options{Depth: x.in.Settings.Depth, NonFinite: true})
		if err != nil {
			return x.in.Fail(rollout.At(p.at), "/message/content", "the reply cannot be read: %s", err)
		}
		var one rollout.Rollout
		noted := len(x.in.Notes)
		if err := x.in.Blocks(&one, rollout.Message{Role: rollout.RoleAssistant, Sampled: p.why}, body); err != nil {
			return err
		}
		for k := noted; k < len(x.in.Notes); k++ {
			x.in.Notes[k].Message = rollout.At(p.at)
		}
		if len(one.Messages) != 1 {
			return x.in.Fail(rollout.At(p.at), "/message/content", "the reply holds results of tools, which only a user's record can")
		}
		r.Messages[p.at] = one.Messages[0]
		m := &r.Messages[p.at]
		if hidden(body) && m.Reasoning == "" {
			x.in.NoteRedacted(p.at)
		}
		parts, known := x.context(t, p)
		p.seen = true
		if p.why != rollout.SampledByPolicy {
			continue
		}
		if m.Content == "" && len(m.Parts) == 0 && len(m.ToolCalls) == 0 {
			m.Sampled = rollout.SampledUnknown
			x.in.Note("reply_not_recorded", rollout.At(p.at), "the session holds no text and no call of this reply; it is not trained")
			continue
		}
		turn := rollout.Turn{Message: p.at, Step: len(r.Turns), ID: p.id, FinishReason: p.finish}
		if p.interrupt && p.finish == "" && len(m.ToolCalls) == 0 {
			turn.Incomplete = "the user interrupted the reply"
			x.in.Note("incomplete", rollout.At(p.at), "the user interrupted the reply, so that its end was not sampled: it is context and never trained")
		}
		if p.broken {
			turn.Incomplete = "a part of the reply could not be read"
			x.in.Note("incomplete", rollout.At(p.at), "a part of the reply could not be read: it is context and never trained")
		}
		if turn.Context.Unknown = !known; known {
			turn.Context.Parts = parts
		} else if lost < 0 {
			lost = p.at
		}
		r.Turns = append(r.Turns, turn)
	}
	if lost >= 0 {
		x.in.Note("context_lost", rollout.At(lost), "what the model saw from here on is not recorded: a record that it goes on from is missing or not understood, or a compaction tells no summary")
	}
	return nil
}

// hidden reports whether a reply has thinking without text.
func hidden(body format.Value) bool {
	for _, b := range body.Items() {
		if b.Get("type").Is("thinking") && b.Get("thinking").Is("") {
			return true
		}
	}
	return false
}

// view lists the messages that a reply saw, in order: the first `plain` messages of its
// thread, then rest.
type view struct {
	plain int
	rest  []int
}

func (v *view) add(k int) {
	if len(v.rest) == 0 && k == v.plain {
		v.plain++
		return
	}
	v.rest = append(v.rest, k)
}

// parts returns the view as the context of message at; nil is the plain history.
func (v *view) parts(at int) []rollout.ContextPart {
	if len(v.rest) == 0 && v.plain == at {
		return nil
	}
	out := []rollout.ContextPart{}
	if v.plain > 0 {
		out = append(out, rollout.ContextPart{To: v.plain})
	}
	for _, k := range v.rest {
		out = format.AppendRange(out, k)
	}
	return out
}

// context returns what a reply saw: the messages of its ancestor records and the results of
// all calls among them.
func (x *run) context(t *thread, p *reply) (parts []rollout.ContextPart, known bool) {
	p.saw, p.known = x.extendView(t, p)
	return p.saw.parts(p.at), p.known
}

// extendView returns the view of a reply: that of the previous reply in its chain, extended by
// the messages since.
func (x *run) extendView(t *thread, p *reply) (out view, known bool) {
	q, between := x.before(p)
	if q == nil {
		list, known := x.above(p)
		x.addAll(t, p, &out, list)
		return out, known
	}
	if !q.known {
		return out, false
	}
	out = view{plain: q.saw.plain, rest: slices.Clone(q.saw.rest)}
	x.addAll(t, p, &out, append([]int{q.at}, between...))
	return out, true
}

// before returns the closest reply among the ancestors of p whose view can be extended, and
// the messages between; q is nil if there is none.
func (x *run) before(p *reply) (q *reply, between []int) {
	if !x.linked || p.first.root {
		return nil, nil
	}
	for r := x.records[p.first.parent]; r != nil && r.thread == p.first.thread && !r.lost && r.seq < p.first.seq; r = x.records[r.parent] {
		if r.reply != nil && r.reply != p {
			for _, c := range x.cuts {
				if c.seq > r.reply.first.seq && c.seq < p.first.seq {
					return nil, nil
				}
			}
			if !r.reply.seen {
				return nil, nil
			}
			slices.Reverse(between)
			return r.reply, between
		}
		for k := r.to - 1; k >= r.from; k-- {
			between = append(between, k)
		}
	}
	return nil, nil
}

// addAll adds messages to a view and, after each reply, the results of its calls that are
// not in the list.
func (x *run) addAll(t *thread, p *reply, out *view, list []int) {
	in := make(map[int]bool, len(list))
	for _, k := range list {
		in[k] = true
	}
	done := map[int]bool{p.at: true}
	put := func(k int) {
		if !done[k] {
			done[k] = true
			out.add(k)
		}
	}
	for _, k := range list {
		put(k)
		var answers []int
		for _, call := range t.r.Messages[k].ToolCalls {
			if a, ok := t.answers[call.ID]; ok && a < p.at && !in[a] {
				answers = append(answers, a)
			}
		}
		slices.Sort(answers)
		for _, a := range answers {
			put(a)
		}
	}
}

// above lists the messages of the ancestor records of a reply, oldest first.
func (x *run) above(p *reply) (list []int, known bool) {
	rec := p.first
	if !x.linked || rec.root && rec.before != nil { // a reply always has a prompt
		for k := range p.at {
			list = append(list, k)
		}
		for r := rec.before; r != nil; r = r.before {
			if r.lost {
				return nil, false
			}
		}
		return list, true
	}
	add := func(r *record) {
		for k := r.to - 1; k >= r.from; k-- {
			list = append(list, k)
		}
	}
	var kept []string // follow a compaction's summary, so skipped elsewhere
	var anchor string
	steps := 0
	for uuid := rec.parent; ; {
		if uuid == "" {
			if !rec.root && rec.parent == "" && rec.before != nil {
				return nil, false
			}
			break
		}
		r := x.records[uuid]
		if r != nil && r.thread != p.first.thread {
			break // a sub-agent begins with its task
		}
		// A compaction overwrote the parent of relinked records: what they continued from
		// is lost.
		if steps++; r == nil || r.lost || r.seq > p.first.seq || steps > len(x.records) {
			return nil, false
		}
		if r.kept != nil {
			kept, anchor = r.kept, r.anchor
		}
		add(r)
		rec, uuid = r, x.parent(r, uuid, p.first.seq)
	}
	slices.Reverse(list)
	if kept == nil {
		return list, true
	}
	return x.preserved(list, kept, anchor)
}

// parent returns the parent of a record as seen by a reply: the summary, if a compaction
// before the reply kept records from this one on.
func (x *run) parent(r *record, uuid string, reply int) string {
	for i := len(x.cuts) - 1; i >= 0; i-- {
		if c := x.cuts[i]; c.head == uuid && c.seq < reply {
			return c.anchor
		}
	}
	return r.parent
}

// preserved moves the messages that a compaction kept to the place after its summary.
func (x *run) preserved(list []int, kept []string, anchor string) ([]int, bool) {
	var stay []int
	for _, u := range kept {
		r := x.records[u]
		if r == nil {
			return nil, false
		}
		for k := r.from; k < r.to; k++ {
			stay = append(stay, k)
		}
	}
	a := x.records[anchor]
	if a == nil || a.to == a.from {
		return nil, false
	}
	at := slices.Index(list, a.to-1)
	if at < 0 {
		return nil, false
	}
	rest := slices.DeleteFunc(slices.Clone(list[at+1:]), func(k int) bool { return slices.Contains(stay, k) })
	return slices.Concat(list[:at+1], stay, rest), true
}
