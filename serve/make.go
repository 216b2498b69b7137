package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
)

// score starts to make the process rewards of a rollout. The caller holds the lock, or has the only reference
// to the queue.
func (q *queue) score(m *member) {
	if q.opts.Score == nil || q.closed {
		return
	}
	m.scored = make(chan struct{})
	q.work.Go(func() {
		defer close(m.scored)
		select {
		case q.scoring <- struct{}{}:
			defer func() { <-q.scoring }()
		case <-q.ctx.Done():
			m.err = q.ctx.Err()
			return
		}
		r, err := q.rollout(m)
		if err == nil && r.Failure == nil {
			err = guarded("scoring the rollout", func() (err error) { m.steps, err = q.opts.Score(q.ctx, r); return err })
		}
		m.err = err
	})
}

func (q *queue) rollout(m *member) (*rollout.Rollout, error) {
	s, ok := q.recorder.Session(m.id)
	if !ok {
		return nil, rollout.Errorf(rollout.KindInternal, rollout.Where{Rollout: m.id}, "the recorder does not know it: %w", live.ErrUnknown)
	}
	return s.Rollout()
}

// startMaking begins to make the batch of a group and, where no trainer acknowledges it, to deliver it. It
// retries after errors that may pass. The caller holds the lock, or has the only reference to the queue.
func (q *queue) startMaking(g *group) {
	if q.closed { // the batch is made after a restart
		g.fault = rollout.Errorf(rollout.KindInput, rollout.Where{}, "the queue is closed: %w", live.ErrUnavailable)
		return
	}
	q.work.Go(func() {
		for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
			var err error
			if !g.made { // only this goroutine sets it
				err = q.make(g)
			}
			if err == nil {
				err = q.settle(g)
			}
			if err == nil || q.ctx.Err() != nil {
				return
			}
			q.opts.Refused(g.key, err)
			q.mu.Lock()
			closed := q.closed
			g.fault = err
			q.wake()
			q.mu.Unlock()
			if closed {
				return // the batch is made after a restart
			}
			select {
			case <-time.After(pause):
			case <-q.ctx.Done():
				return
			}
		}
	})
}

// make makes the batch of a group. An error comes from the machine and may pass; a group of which no batch can
// be made is refused.
func (q *queue) make(g *group) error {
	for _, m := range g.members {
		if m.scored != nil {
			<-m.scored
		}
	}
	q.making.Lock()
	defer q.making.Unlock()
	var leftOut []string
	b, err := q.add(g, &leftOut)
	if err != nil && (q.ctx.Err() != nil || transient(err)) {
		return err
	}
	if err != nil {
		q.opts.Refused(g.key, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	g.made, g.batch, g.fault = true, b, nil
	switch {
	case err != nil:
		g.why = err.Error()
		q.stats.Refused++
	case b.Seq == 0:
		g.why = "no rollout of the group can be trained"
	default:
		q.stats.Last = b.Seq
		q.stats.Groups++
		q.stats.Rows += int64(b.Rows)
		q.stats.Tokens += b.Tokens
		q.stats.Trained += b.Trained
	}
	for _, reason := range leftOut {
		q.leftOut(reason)
	}
	q.wake()
	return nil
}

// maxReasons is how many reasons are counted separately: failures are free text of harnesses.
const maxReasons = 64

// leftOut counts a rollout that is left out. The caller holds the lock.
func (q *queue) leftOut(reason string) {
	if _, there := q.stats.LeftOut[reason]; !there && (len(q.stats.LeftOut) >= maxReasons || len(reason) > maxName) {
		reason = "other"
	}
	q.stats.LeftOut[reason]++
}

// transient reports whether an error comes from the machine and not from the group.
func transient(err error) bool {
	status, _ := gate.Answer(err)
	return status == http.StatusServiceUnavailable || errors.Is(err, export.ErrClosed)
}

// add makes the batch, or finds it, and appends the reasons of rollouts that are left out.
func (q *queue) add(g *group, leftOut *[]string) (stream.Batch, error) {
	var n note
	q.mu.Lock()
	for _, m := range g.members {
		n.Sessions = append(n.Sessions, noted{m.id, m.ending})
	}
	if len(g.members) < q.opts.Size {
		n.Short = max(1, q.names.get(g.name).short.UnixNano())
	}
	q.mu.Unlock()
	text, err := json.Marshal(n)
	if err != nil {
		return stream.Batch{}, err
	}
	return q.stream.Add(g.key, text, func(w *export.Writer) error {
		rollouts := make([]*rollout.Rollout, len(g.members))
		for i, m := range g.members {
			r, err := q.rollout(m)
			if err != nil {
				return err
			}
			if r.Steps = append(slices.Clip(r.Steps), m.steps...); m.err != nil {
				markLeftOut(r, "not_scored", m.err.Error())
			}
			rollouts[i] = r
		}
		q.leaveOut(rollouts)
		for _, r := range rollouts {
			if r.Failure != nil {
				*leftOut = append(*leftOut, r.Failure.Reason)
			}
		}
		return guarded("making the rows of the group", func() error { return q.opts.Rows(q.ctx, rollouts, w) })
	})
}

// guarded converts a panic of a user's function to an error.
func guarded(what string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = rollout.Errorf(rollout.KindScorer, rollout.Where{}, "%s panicked: %v", what, p)
		}
	}()
	return do()
}

// markLeftOut marks a rollout as not trained.
func markLeftOut(r *rollout.Rollout, reason, detail string) {
	if r.Failure == nil {
		r.Status, r.Failure = rollout.StatusFailed, &rollout.Failure{Reason: reason, Detail: detail}
	}
}

// leaveOut leaves out the rollouts of a policy that is too old, and all of a group with too few.
func (q *queue) leaveOut(rollouts []*rollout.Rollout) {
	now := q.version()
	told := now != nil
	oldest := make([]*int32, len(rollouts))
	for i, r := range rollouts {
		for k := range r.Turns {
			for _, v := range versions(&r.Turns[k]) {
				if oldest[i] == nil || v < *oldest[i] {
					oldest[i] = &v
				}
				if !told && (now == nil || v > *now) {
					now = &v
				}
			}
		}
	}
	for i, r := range rollouts {
		if len(rollouts) < q.opts.Least {
			markLeftOut(r, "too_few", fmt.Sprintf("%d of the group's rollouts ended in time, %d are needed", len(rollouts), q.opts.Least))
		}
		if q.opts.MaxAge != nil && now != nil && oldest[i] != nil && int64(*now)-int64(*oldest[i]) > int64(*q.opts.MaxAge) {
			markLeftOut(r, "stale", fmt.Sprintf("it has tokens of version %d, the policy is at %d, and %d is the most between them", *oldest[i], *now, *q.opts.MaxAge))
		}
	}
}

func versions(t *rollout.Turn) []int32 {
	if len(t.Output) == 0 || t.Version == nil {
		return nil
	}
	out := []int32{*t.Version}
	for _, r := range t.Versions {
		out = append(out, r.Version)
	}
	return out
}

// Next waits for the first unacknowledged batch after that number. It returns the context's error if that ends
// first; a number without a batch is live.ErrUnknown, 0 aside.
func (q *queue) Next(ctx context.Context, after int) (stream.Batch, error) {
	for {
		q.mu.Lock()
		var first *group
		for _, g := range q.pending {
			if g.made && g.batch.Seq > after && (first == nil || g.batch.Seq < first.batch.Seq) {
				first = g
			}
		}
		changed, closed, last := q.changed, q.closed, q.stats.Last
		q.mu.Unlock()
		switch {
		case after > last:
			return stream.Batch{}, noBatch("after", after, last).WithFix("take the trainer's checkpoint or the service's folder of the same run")
		case first != nil:
			return first.batch, nil
		case closed:
			return stream.Batch{}, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the queue is closed: %w", live.ErrUnavailable)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return stream.Batch{}, ctx.Err()
		case <-q.ctx.Done():
		}
	}
}

// Ack records durably that the trainer has all batches up to that number: they are not handed out again, and
// their rollouts are dropped. Repeating it does nothing; a number without a batch is live.ErrUnknown.
func (q *queue) Ack(ctx context.Context, seq int) error {
	q.acking.Lock()
	defer q.acking.Unlock()
	q.mu.Lock()
	var done []*group
	for _, g := range q.pending {
		if g.made && g.batch.Seq <= seq { // groups without a batch are delivered with the next batch
			done = append(done, g)
		}
	}
	last := q.stats.Last
	q.mu.Unlock()
	if seq < 1 || seq > last {
		return noBatch("seq", seq, last)
	}
	slices.SortFunc(done, func(a, b *group) int { return a.batch.Seq - b.batch.Seq })
	for _, g := range done {
		if err := q.deliver(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

func noBatch(field string, seq, last int) *rollout.Error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, "there is no batch %d, the last is %d: %w", seq, last, live.ErrUnknown)
}

// deliver records that a group is delivered.
func (q *queue) deliver(ctx context.Context, g *group) error {
	b := live.Batch{Key: recordKey(g.key), Digest: g.batch.Digest, Group: recordKey(g.key)}
	var n note
	for _, m := range g.members {
		b.Sessions = append(b.Sessions, m.id)
		n.Sessions = append(n.Sessions, noted{m.id, m.ending})
	}
	if g.empty() { // the note answers its rollouts after a restart
		n.Why = rollout.Printable(g.why)
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		b.Digest = string(text)
	}
	if err := q.recorder.Deliver(ctx, b); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = slices.DeleteFunc(q.pending, func(x *group) bool { return x == g })
	for _, m := range g.members {
		delete(q.members, m.id)
		q.keepAnswer(m.id, pastAnswer{m.ending, q.answer(g.name, m.index, &g.batch, g.why)})
	}
	q.acked = max(q.acked, g.batch.Seq)
	q.wake()
	return nil
}

// settle delivers what awaits no acknowledgement: groups without a batch beyond emptyHeld, and with
// Groups.Folder the batch of g.
func (q *queue) settle(g *group) error {
	q.forgetEmpty()
	if !q.opts.Folder || g.empty() {
		return nil
	}
	if err := q.Ack(q.ctx, g.batch.Seq); err != nil {
		return err
	}
	return q.steps()
}

// steps writes the steps whose groups are delivered.
func (q *queue) steps() error {
	q.mu.Lock()
	acked := q.acked
	q.mu.Unlock()
	return q.stream.Steps(q.opts.StepGroups, acked)
}

// empty reports whether a group gave no batch.
func (g *group) empty() bool { return g.made && g.batch.Seq == 0 }

// emptyHeld is how many groups without a batch wait for an acknowledgement, so that their answers survive a
// kill.
const emptyHeld = 16

// forgetEmpty delivers the oldest groups without a batch beyond emptyHeld.
func (q *queue) forgetEmpty() {
	for {
		q.mu.Lock()
		var oldest *group
		n := 0
		for _, g := range q.pending {
			if g.empty() {
				if n++; oldest == nil {
					oldest = g
				}
			}
		}
		q.mu.Unlock()
		if n <= emptyHeld {
			return
		}
		q.acking.Lock()
		err := q.deliver(q.ctx, oldest)
		q.acking.Unlock()
		if err != nil {
			q.opts.Refused(oldest.key, err)
			return
		}
	}
}
