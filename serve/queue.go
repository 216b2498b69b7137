package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
)

// queue makes batches of a recorder's rollouts, one for each group, and hands them to a trainer in order, each
// exactly once. It holds the groups from the end of their first rollout until a trainer has acknowledged them.
// Its methods are safe for concurrent use.
//
// The recorder's journal holds the ends of rollouts, complete groups and acknowledgements; the stream's folder
// holds the batches. After a kill, whatever one lacks is recreated from the other: the batch of a complete
// group is made, an unacknowledged batch is handed out again, with the same bytes.
type queue struct {
	opts     Groups
	recorder *live.Recorder
	stream   *stream.Stream
	version  func() *int32   // the current policy version, for MaxAge; nil = not told, the newest in the group counts
	ctx      context.Context // of the background work
	stop     context.CancelFunc
	work     sync.WaitGroup
	scoring  chan struct{} // limits concurrent scoring
	making   sync.Mutex    // one batch at a time, so that batches become known in the order of their numbers
	acking   sync.Mutex

	mu      sync.Mutex
	changed chan struct{}      // closed at each change that a caller may wait for
	open    map[string]*group  // incomplete groups by name
	pending []*group           // complete, unacknowledged
	members map[string]*member // by rollout, of open and pending groups
	names   *names
	past    map[string]pastAnswer // of delivered rollouts
	order   []string              // keys of past, oldest first
	acked   int
	stats   queueStats
	closed  bool
}

// group is an undelivered group.
type group struct {
	name   string
	ending sync.Mutex // held while a rollout of the group ends, so that each gets its own place

	// under queue.mu
	key     stream.Key
	members []*member
	closed  bool // accepts no more rollouts
	timer   *time.Timer
	made    bool
	batch   stream.Batch // Seq 0 = there is none
	why     string       // why there is no batch
	fault   error        // of the last attempt to make the batch
}

type member struct {
	id     string
	index  int
	group  *group
	ending string // digest
	scored chan struct{}
	steps  []rollout.StepScore
	err    error
}

type pastAnswer struct {
	ending string
	answer endAnswer
}

// note is stored with a batch in the stream.
type note struct {
	Sessions []noted `json:"sessions"`
	// Short is when a deadline closed the group, in nanoseconds since 1970; 0 = it was full.
	Short int64 `json:"short,omitempty"`
	// Why is the reason for a group without a batch, whose delivery has the note as its digest.
	Why string `json:"why,omitempty"`
}

type noted struct {
	ID     string `json:"id"`
	Ending string `json:"ending"`
}

// maxScoring is how many rollouts are scored concurrently.
const maxScoring = 8

// newQueue makes a queue that continues from the contents of the recorder and the stream.
func newQueue(r *live.Recorder, to *stream.Stream, o Groups, version func() *int32) (*queue, error) {
	q := &queue{opts: o.withDefaults(), recorder: r, stream: to, version: version, scoring: make(chan struct{}, maxScoring), changed: make(chan struct{}), open: map[string]*group{}, members: map[string]*member{},
		names: newNames(maxNames), past: map[string]pastAnswer{}, stats: queueStats{LeftOut: map[string]int{}}}
	q.ctx, q.stop = context.WithCancel(context.Background())
	if err := q.load(); err != nil {
		q.stop()
		return nil, err
	}
	return q, nil
}

func (q *queue) answer(name string, index int, b *stream.Batch, why string) endAnswer {
	a := endAnswer{Group: name, Waiting: max(0, q.opts.Size-index-1)}
	if a.Waiting > 0 {
		return a
	}
	if a.LeftOut = why; b.Seq > 0 {
		a.Batch = &written{b.Seq, q.stream.Path(*b), b.Rows, b.Tokens, b.Trained}
	}
	return a
}

// recordKey returns the key of a group in the journal.
func recordKey(k stream.Key) string { return fmt.Sprintf("%s@%d", k.Group, k.Step) }

func keyOf(record, name string) stream.Key {
	k := stream.Key{Group: name}
	_, _ = fmt.Sscanf(record[min(len(name), len(record)):], "@%d", &k.Step)
	return k
}

// groupOf returns the incomplete group of that name. The caller holds the lock.
func (q *queue) groupOf(name string) *group {
	g := q.open[name]
	if g == nil {
		g = &group{name: name}
		q.open[name] = g
		q.startDeadline(g)
	}
	return g
}

// startDeadline starts the timer of a group. The caller holds the lock.
func (q *queue) startDeadline(g *group) {
	if d := q.opts.Deadline; d > 0 {
		g.timer = time.AfterFunc(d, func() { q.expire(g) })
	}
}

const (
	reasonLate = "late"
	detailLate = "it ended after the deadline of its group"
)

// End records how a rollout ended and adds it to its group. For the rollout that completes the group it returns
// when the batch is there. Repeating an ending returns the same answer; another ending is live.ErrConflict, and
// an unknown rollout live.ErrUnknown, unless it failed before its first call. The work continues if ctx ends.
func (q *queue) End(ctx context.Context, id string, e endRequest) (endAnswer, error) {
	if err := e.validate(); err != nil {
		return endAnswer{}, err
	}
	digest, err := e.digest()
	if err != nil {
		return endAnswer{}, err
	}
	for {
		m, answer, err := q.end(context.WithoutCancel(ctx), id, digest, e)
		switch {
		case errors.Is(err, errClosed):
			continue // the deadline closed the group meanwhile
		case err != nil || m == nil:
			return answer, err
		}
		return q.wait(ctx, m)
	}
}

var errClosed = errors.New("the group was closed")

// end returns the member of the rollout in its group, or an answer if it has none.
func (q *queue) end(ctx context.Context, id, digest string, e endRequest) (*member, endAnswer, error) {
	q.mu.Lock()
	m, known := q.members[id]
	old, delivered := q.past[id]
	var g *group
	closed := q.closed
	if !known && !delivered && !closed {
		g = q.groupOf(e.Group)
	}
	q.mu.Unlock()
	switch {
	case closed:
		return nil, endAnswer{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: id}, "the queue is closed: %w", live.ErrUnavailable)
	case known:
		return m, endAnswer{}, errors.Join(q.repeat(ctx, m, e), q.completed(ctx, m.group))
	case delivered && old.ending == digest:
		return nil, old.answer, nil
	case delivered:
		return nil, endAnswer{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: id}, "it ended otherwise: %w", live.ErrConflict)
	}
	s, err := q.session(ctx, id, e)
	if err != nil {
		q.dropEmpty(g)
		if answer, ok, err := q.forgotten(id, digest, e.Group); ok {
			return nil, answer, err
		}
		return nil, endAnswer{}, err
	}
	if s.Parent() != "" {
		q.dropEmpty(g)
		return nil, endAnswer{Group: e.Group}, recordEnd(ctx, s, e, 0, nil)
	}
	if late, answer, err := q.endLate(ctx, s, digest, e); late || err != nil {
		q.dropEmpty(g)
		return nil, answer, err
	}
	g.ending.Lock()
	defer g.ending.Unlock()
	q.mu.Lock()
	m, known = q.members[id]
	closed = g.closed
	index := len(g.members)
	q.mu.Unlock()
	switch {
	case known: // the same ending, sent twice concurrently
		return m, endAnswer{}, q.repeat(ctx, m, e)
	case closed:
		return nil, endAnswer{}, errClosed
	}
	if err := recordEnd(ctx, s, e, index, nil); err != nil {
		q.dropEmpty(g)
		return nil, endAnswer{}, err
	}
	m = &member{id: id, index: index, group: g, ending: digest}
	q.mu.Lock()
	g.members = append(g.members, m)
	q.members[id] = m
	q.score(m)
	q.mu.Unlock()
	if index+1 < q.opts.Size {
		return m, endAnswer{}, nil
	}
	return m, endAnswer{}, q.complete(ctx, g)
}

// repeat checks an ending that is sent again.
func (q *queue) repeat(ctx context.Context, m *member, e endRequest) error {
	s, ok := q.recorder.Session(m.id)
	if !ok {
		return nil // it was delivered meanwhile
	}
	return recordEnd(ctx, s, e, m.index, nil)
}

// session returns the session of a rollout, and begins it if the rollout failed before its first call.
func (q *queue) session(ctx context.Context, id string, e endRequest) (*live.Session, error) {
	s, ok := q.recorder.Session(id)
	if ok {
		return s, nil
	}
	if e.Failure != "" {
		if len(id) > maxName || rollout.Printable(id) != id {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: id[:min(len(id), maxName)]}, "the name is over %d bytes long, or not printable", maxName)
		}
		return q.recorder.Begin(ctx, live.Start{ID: id})
	}
	return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: id}, "no call of it is recorded: %w", live.ErrUnknown)
}

// recordEnd records the end of a session. It failed for the given reason, nil = the ending's.
func recordEnd(ctx context.Context, s *live.Session, e endRequest, index int, failure *rollout.Failure) error {
	calls, err := s.Calls()
	if err != nil {
		return err
	}
	x := live.Ending{Group: e.Group, Index: index, Status: rollout.StatusCompleted, Metadata: e.Metadata,
		Outcome: rollout.Outcome{Resolved: e.Resolved, Reward: e.Reward}}
	if why := gate.Truncated(calls); why != "" {
		x.Status, x.ExitStatus = rollout.StatusTruncated, why
	}
	if failure == nil && e.Failure != "" {
		failure = &rollout.Failure{Reason: e.Failure}
	}
	if failure != nil {
		x.Status, x.Failure = rollout.StatusFailed, failure
	}
	_, err = s.End(ctx, x)
	return err
}

// dropEmpty drops a group that got no rollout.
func (q *queue) dropEmpty(g *group) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(g.members) > 0 || g.closed {
		return
	}
	g.closed = true
	if g.timer != nil {
		g.timer.Stop()
	}
	if q.open[g.name] == g {
		delete(q.open, g.name)
	}
}

// expire closes a group at its deadline.
func (q *queue) expire(g *group) {
	g.ending.Lock()
	defer g.ending.Unlock()
	q.mu.Lock()
	closed := g.closed || q.closed
	if !closed && len(g.members) < q.opts.Size {
		q.names.set(g.name, func(x *name) { x.short = q.opts.Now() })
	}
	empty := len(g.members) == 0
	q.mu.Unlock()
	if closed {
		return
	}
	if empty {
		q.dropEmpty(g)
		return
	}
	if err := q.complete(q.ctx, g); err != nil {
		q.opts.Refused(stream.Key{Group: g.name}, err)
		q.mu.Lock()
		g.timer.Reset(time.Second)
		q.mu.Unlock()
	}
}

// completed completes a full group that the journal could not record earlier.
func (q *queue) completed(ctx context.Context, g *group) error {
	g.ending.Lock()
	defer g.ending.Unlock()
	q.mu.Lock()
	due := !g.closed && len(g.members) >= q.opts.Size
	q.mu.Unlock()
	if !due {
		return nil
	}
	return q.complete(ctx, g)
}

// complete records that a group is complete, and begins to make its batch. The caller holds Group.ending.
func (q *queue) complete(ctx context.Context, g *group) error {
	q.mu.Lock()
	key := stream.Key{Group: g.name, Step: q.names.get(g.name).step}
	q.mu.Unlock()
	for {
		if _, taken := q.recorder.Delivered(recordKey(key)); !taken {
			break
		}
		key.Step++
	}
	x := live.Group{Key: recordKey(key)}
	for _, m := range g.members {
		x.Sessions = append(x.Sessions, m.id)
	}
	if err := q.recorder.CompleteGroup(ctx, x); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	g.closed, g.key = true, key
	if g.timer != nil {
		g.timer.Stop()
	}
	q.names.atLeast(g.name, key.Step+1)
	delete(q.open, g.name)
	q.pending = append(q.pending, g)
	q.startMaking(g)
	return nil
}

// wait returns the answer for a rollout of a group, once it is known.
func (q *queue) wait(ctx context.Context, m *member) (endAnswer, error) {
	for {
		q.mu.Lock()
		g, changed := m.group, q.changed
		answer := q.answer(g.name, m.index, &g.batch, g.why)
		done, fault := answer.Waiting > 0 || g.made, g.fault
		q.mu.Unlock()
		switch {
		case done:
			return answer, nil
		case fault != nil:
			return endAnswer{}, fault
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return endAnswer{}, ctx.Err()
		case <-q.ctx.Done():
			return endAnswer{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: m.id}, "the service ends before the batch is made: %w", live.ErrUnavailable)
		}
	}
}

// wake notifies all waiters. The caller holds the lock.
func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Full returns why no session should begin now, "" if one may: MaxUndelivered groups await the trainer.
func (q *queue) Full() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, g := range q.pending {
		if !g.empty() {
			n++
		}
	}
	if n >= cmp.Or(q.opts.MaxUndelivered, 1) {
		return fmt.Sprintf("%d groups wait for the trainer, at most %d may", n, q.opts.MaxUndelivered)
	}
	return ""
}

// Stats returns the current counts.
func (q *queue) Stats() queueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.LeftOut = maps.Clone(s.LeftOut)
	s.Open, s.Undelivered, s.Acked = len(q.open), len(q.pending), q.acked
	for _, g := range q.open {
		s.Waiting += len(g.members)
	}
	for _, g := range q.pending {
		if !g.made {
			s.Making++
		}
	}
	return s
}

// Close waits for the batches that are being made, at most until ctx ends, and stops.
func (q *queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	for _, g := range q.open {
		if g.timer != nil {
			g.timer.Stop()
		}
	}
	q.mu.Unlock()
	done := make(chan struct{})
	go func() {
		q.work.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	q.stop()
	<-done
	return err
}
