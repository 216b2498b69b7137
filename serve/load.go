package serve

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// load restores the state that an earlier process left.
func (q *queue) load() error {
	complete := map[string]live.Group{}
	for _, g := range q.recorder.Groups() {
		complete[g.Key] = g
	}
	for b, err := range q.stream.Batches() {
		if err != nil {
			return err
		}
		q.names.atLeast(b.Group, b.Step+1)
		q.stats.Last = b.Seq
		if _, waits := complete[recordKey(b.Key)]; !waits {
			q.acked = b.Seq
			q.remember(&b)
		}
	}
	if err := q.steps(); err != nil {
		return err
	}
	for _, g := range q.recorder.Groups() {
		r, err := q.rollout(&member{id: g.Sessions[0]})
		if err != nil {
			return err
		}
		x := &group{name: r.Group, closed: true, key: keyOf(g.Key, r.Group)}
		for i, id := range g.Sessions {
			x.members = append(x.members, &member{id: id, index: i, group: x})
		}
		if err := q.adopt(x); err != nil {
			return err
		}
		q.names.atLeast(x.name, x.key.Step+1)
		q.pending = append(q.pending, x)
	}
	for s := range q.recorder.Sessions() {
		if !s.Ended() || q.members[s.ID()] != nil {
			continue
		}
		r, err := s.Rollout()
		if err != nil {
			return err
		}
		if r.Failure != nil && r.Failure.Reason == reasonLate {
			digest := "" // of a rollout that had also failed nothing is known
			if e := endingOf(r); e.Resolved != nil || e.Reward != nil {
				if digest, err = e.digest(); err != nil {
					return err
				}
			}
			if err := q.deliverLate(q.ctx, s.ID(), digest); err != nil {
				return err
			}
			continue
		}
		g := q.open[r.Group]
		if g == nil {
			g = &group{name: r.Group}
			q.open[r.Group] = g
		}
		g.members = append(g.members, &member{id: s.ID(), index: r.Index, group: g})
	}
	var open []*group
	for _, name := range slices.Sorted(maps.Keys(q.open)) {
		g := q.open[name]
		slices.SortFunc(g.members, func(a, b *member) int { return cmp.Compare(a.index, b.index) })
		if err := q.adopt(g); err != nil {
			return err
		}
		open = append(open, g)
	}
	return q.resume(open)
}

// resume continues with the restored groups, none of which is in progress: batches are made, and deadlines
// begin.
func (q *queue) resume(open []*group) error {
	q.mu.Lock()
	for _, g := range q.pending {
		if b, there := q.stream.Find(g.key); there && !q.opts.Folder {
			g.made, g.batch = true, b
			continue
		}
		q.startMaking(g)
	}
	var full []*group
	for _, g := range open {
		if len(g.members) >= q.opts.Size {
			full = append(full, g)
		} else {
			q.startDeadline(g)
		}
	}
	q.mu.Unlock()
	for _, g := range full {
		if err := q.complete(q.ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// endingOf returns the ending of a rollout that did not fail.
func endingOf(r *rollout.Rollout) endRequest {
	return endRequest{Group: r.Group, Resolved: r.Outcome.Resolved, Reward: r.Outcome.Reward, Metadata: r.Metadata}
}

// adopt registers and scores the members of a group of an earlier process.
func (q *queue) adopt(g *group) error {
	for _, m := range g.members {
		r, err := q.rollout(m)
		if err != nil {
			return err
		}
		e := endingOf(r)
		if r.Failure != nil {
			e.Failure = r.Failure.Reason
		}
		if m.ending, err = e.digest(); err != nil {
			return err
		}
		q.members[m.id] = m
		q.score(m)
	}
	return nil
}

// remember keeps the answers for a delivered batch. The caller holds the lock, or has the only reference to the
// queue.
func (q *queue) remember(b *stream.Batch) {
	var n note
	if json.Unmarshal(b.Note, &n) != nil {
		return
	}
	if n.Short > 0 {
		q.names.set(b.Group, func(x *name) { x.short = time.Unix(0, n.Short) })
	}
	for i, s := range n.Sessions {
		q.keepAnswer(s.ID, pastAnswer{s.Ending, q.answer(b.Group, i, b, "")})
	}
}

// maxAnswers is how many answers for delivered rollouts are kept, so that a repeated ending is answered without
// reading the record.
const maxAnswers = 100_000

func (q *queue) keepAnswer(id string, a pastAnswer) {
	if _, again := q.past[id]; again {
		i := slices.Index(q.order, id)
		q.order = slices.Delete(q.order, i, i+1)
	}
	q.past[id] = a
	if q.order = append(q.order, id); len(q.order) > maxAnswers {
		delete(q.past, q.order[0])
		q.order = q.order[1:]
	}
}
