package live

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
	"github.com/turnpack/turnpack/rollout/live/internal/record"
)

// Recorder holds the sessions of a service. Its methods are safe for concurrent use.
type Recorder struct {
	opts Options

	mu        sync.Mutex
	sessions  map[string]*Session
	runs      []*run
	groups    []Group
	delivered map[string]delivery
	past      map[string]int // delivered session → segment of its delivery record
	holds     []hold
	groupsAt  int          // segment of the first record of groups, 0 = none
	held      atomic.Int64 // journal bytes of the undelivered sessions
	compacts  sync.Mutex
	cache     cache
}

// Group is a complete set of rollouts.
type Group struct {
	Key      string
	Sessions []string // the rollouts, in the order of the group
}

// Batch describes a delivery to a trainer.
type Batch struct {
	Key      string   // of the batch, for example group and step; unique
	Digest   string   // of the delivered content, to recognize a repeated delivery
	Group    string   // the group that the batch completes, "" = none
	Sessions []string // rollouts that are finished with, including those left out of the batch
}

// hold keeps the segments that a delivery releases until the delivery is durable.
type hold struct {
	first  int
	ticket *log.Ticket
}

type delivery struct {
	digest  string
	segment int
}

// New makes a recorder that continues from the journal: sessions that had ended can be delivered, open sessions
// continue, and calls that were running when the process was killed are aborted with no output.
func New(o Options) (*Recorder, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := newRecorder(o)
	j := o.Journal
	if j == nil {
		return r, nil
	}
	if j.log == nil {
		return nil, zeroValue("live.Journal", "OpenJournal")
	}
	if j.taken.Swap(true) {
		return nil, input(ErrConflict, rollout.Where{File: j.dir}, "the journal has a recorder: %w", ErrConflict)
	}
	p := player{rec: r}
	if err := p.play(j.dir); err != nil {
		return nil, err
	}
	for _, g := range r.runs {
		g.abortLost()
	}
	return r, nil
}

func newRecorder(o Options) *Recorder {
	r := &Recorder{opts: o.withDefaults(), sessions: map[string]*Session{}, delivered: map[string]delivery{}, past: map[string]int{}}
	if o.Journal != nil {
		r.cache.most = int64(r.opts.MaxMemory)
	}
	return r
}

// abortLost ends the calls whose process is gone.
func (g *run) abortLost() {
	if g.content == nil {
		return
	}
	for _, c := range g.order {
		if !c.open {
			continue
		}
		if c.open = false; c.State == StateRunning {
			c.State, c.Why = StateAborted, "the process ended before it"
		}
		g.running--
	}
}

// record encodes e, queues it for the journal and applies the encoded record, so that the state is the same as
// after a restart. The record becomes durable later.
func (r *Recorder) record(e *record.Entry, newWork bool, apply func(*record.Entry) error) (*log.Ticket, error) {
	most := r.opts.MaxBytes
	if e.Kind == record.Reply { // ids have a limit of their own
		t := &e.Body.Turns[0]
		most += 16 * (len(t.Prompt.Add) + 2*len(t.Output))
	}
	frame, err := e.Encode(most)
	if err != nil {
		return nil, err
	}
	if len(frame) > maxRecord {
		return nil, record.TooLong(e.Kind, len(frame), maxRecord)
	}
	kept, err := e.Kept(frame)
	if err != nil {
		return nil, err
	}
	var t *log.Ticket
	if j := r.opts.Journal; j != nil {
		if kept.From, t, err = j.log.Enqueue(frame, newWork); err != nil {
			return nil, err
		}
	}
	return t, apply(kept)
}

// maxRecord is the maximum length of a record; a frame stores lengths in 32 bits.
const maxRecord = 1 << 30

// Begin begins a session, or returns the existing session with that id, however it was begun. The record of a
// new session outlives the process, and its fsync begins at most 5 ms later. A session that has ended is
// returned too; its calls are refused.
func (r *Recorder) Begin(ctx context.Context, x Start) (*Session, error) {
	if r.sessions == nil {
		return nil, zeroValue("live.Recorder", "New")
	}
	r.mu.Lock()
	s, t, err := r.begin(x)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := t.WaitNew(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *Recorder) begin(x Start) (*Session, *log.Ticket, error) {
	if s := r.sessions[x.ID]; s != nil {
		if x.Parent != s.parent && x.Parent != "" {
			return nil, nil, input(ErrConflict, rollout.Where{Rollout: x.ID}, "the session's parent is %q, not %q: %w", s.parent, x.Parent, ErrConflict)
		}
		return s, nil, nil
	}
	if _, there := r.past[x.ID]; there {
		return nil, nil, input(ErrFinished, rollout.Where{Rollout: x.ID}, "the session is delivered: %w", ErrFinished)
	}
	if len(r.sessions) >= r.opts.MaxSessions {
		return nil, nil, limit("MaxSessions", "%d sessions are held, at most %d are allowed", len(r.sessions), r.opts.MaxSessions)
	}
	if x.ID == "" {
		if x.ID = r.opts.NewID(); x.ID == "" || r.sessions[x.ID] != nil {
			return nil, nil, input(ErrConflict, rollout.Where{}, "the id %q of a new session is empty or taken: %w", x.ID, ErrConflict)
		}
	}
	e := &record.Entry{Kind: record.Start, Session: x.ID, Parent: x.Parent, Agent: x.Agent, At: r.opts.Now().UnixNano(),
		Body: &rollout.Rollout{ID: x.ID, Group: x.Group, Index: x.Index, Instance: x.Instance, Metadata: maps.Clone(x.Metadata)}}
	if err := e.Body.Validate(); err != nil {
		return nil, nil, err
	}
	if parent := r.sessions[x.Parent]; parent != nil {
		e.Run = parent.run.id
		parent.run.mu.Lock()
		defer parent.run.mu.Unlock()
		if err := parent.open(); err != nil {
			return nil, nil, err
		}
	} else if x.Parent != "" {
		return nil, nil, input(ErrUnknown, rollout.Where{Rollout: x.ID}, "its parent %q: %w", x.Parent, ErrUnknown)
	}
	t, err := r.record(e, true, r.start)
	if err != nil {
		return nil, nil, err
	}
	s := r.sessions[x.ID]
	if t != nil {
		s.run.last = t
	}
	return s, t, nil
}

// start applies the record of a new session.
func (r *Recorder) start(e *record.Entry) error {
	s := &Session{id: e.Session, parent: e.Parent, agent: e.Agent}
	if parent := r.sessions[e.Parent]; parent != nil {
		s.run = parent.run
		s.run.sessions[s.id] = s
	} else {
		e.Body.Origin = rollout.Origin{} // the record was read from no file
		s.run = &run{rec: r, id: s.id, start: e.Body, sessions: map[string]*Session{s.id: s}, content: newContent(), first: e.From.Segment}
		s.run.root = s
		r.runs = append(r.runs, s.run)
	}
	r.sessions[s.id] = s
	return s.run.take(e)
}

// Session returns the session with that id.
func (r *Recorder) Session(id string) (*Session, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[id]
	return s, ok
}

// Sessions yields the sessions without a parent, in the order in which they began.
func (r *Recorder) Sessions() iter.Seq[*Session] {
	r.mu.Lock()
	runs := slices.Clone(r.runs)
	r.mu.Unlock()
	return func(yield func(*Session) bool) {
		for _, g := range runs {
			if !yield(g.root) {
				return
			}
		}
	}
}

// CompleteGroup records durably that a group is complete. Its sessions must have ended, have no parent and be
// distinct. Repeating the call does nothing; other sessions for the key are ErrConflict.
func (r *Recorder) CompleteGroup(ctx context.Context, x Group) error {
	return r.recordDurably(ctx, func() (*log.Ticket, error) {
		for _, old := range r.groups {
			if old.Key != x.Key {
				continue
			}
			if slices.Equal(old.Sessions, x.Sessions) {
				return nil, nil
			}
			return nil, input(ErrConflict, rollout.Where{Field: "Key"}, "group %q is complete with other sessions: %w", x.Key, ErrConflict)
		}
		if err := r.checkEnded(x.Sessions); err != nil {
			return nil, err
		}
		if x.Key == "" || len(x.Sessions) == 0 || len(slices.Compact(slices.Sorted(slices.Values(x.Sessions)))) < len(x.Sessions) {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Group"}, "group %q of sessions %q, expected a key, and at least one session, each once", x.Key, x.Sessions)
		}
		e := &record.Entry{Kind: record.Group, Group: x.Key, Sessions: x.Sessions, At: r.opts.Now().UnixNano()}
		return r.record(e, false, r.apply)
	})
}

// Groups returns the complete, undelivered groups in the order of their records.
func (r *Recorder) Groups() []Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.groups)
}

// Deliver records durably that a trainer has received a batch. The recorder then drops the batch's sessions and
// removes the journal files that no other session needs. Repeating a delivery does nothing; another digest for
// its key is ErrConflict.
func (r *Recorder) Deliver(ctx context.Context, b Batch) error {
	err := r.recordDurably(ctx, func() (*log.Ticket, error) {
		if old, there := r.delivered[b.Key]; there {
			if old.digest == b.Digest {
				return nil, nil
			}
			return nil, input(ErrConflict, rollout.Where{Field: "Key"}, "batch %q was delivered with digest %s: %w", b.Key, old.digest, ErrConflict)
		}
		if err := r.checkEnded(b.Sessions); err != nil {
			return nil, err
		}
		first := r.firstSegment()
		t, err := r.record(&record.Entry{Kind: record.Delivered, Call: b.Key, Digest: b.Digest, Group: b.Group, Sessions: b.Sessions, At: r.opts.Now().UnixNano()}, false, r.apply)
		if t != nil {
			r.holds = append(r.holds, hold{first, t})
		}
		return t, err
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	err = r.retire()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return r.compact(ctx)
}

// Delivered returns the digest of a delivered batch, as long as the journal holds its record.
func (r *Recorder) Delivered(key string) (digest string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.delivered[key]
	return d.digest, ok
}

func (r *Recorder) recordDurably(ctx context.Context, make func() (*log.Ticket, error)) error {
	if r.sessions == nil {
		return zeroValue("live.Recorder", "New")
	}
	r.mu.Lock()
	t, err := make()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// checkEnded checks that the sessions have ended and have no parent.
func (r *Recorder) checkEnded(ids []string) error {
	var errs []error
	for _, id := range ids {
		s := r.sessions[id]
		switch {
		case s == nil:
			errs = append(errs, input(ErrUnknown, rollout.Where{Rollout: id}, "session: %w", ErrUnknown))
		case s.parent != "":
			errs = append(errs, input(ErrConflict, rollout.Where{Rollout: id}, "the session is a part of rollout %q: %w", s.run.id, ErrConflict))
		case !s.Ended():
			errs = append(errs, input(ErrConflict, rollout.Where{Rollout: id}, "the session has not ended: %w", ErrConflict).WithFix("end it first"))
		}
	}
	return errors.Join(errs...)
}

// apply applies a record about several sessions.
func (r *Recorder) apply(e *record.Entry) error {
	if e.Kind == record.Group {
		if r.groups = append(r.groups, Group{e.Group, e.Sessions}); r.groupsAt == 0 {
			r.groupsAt = e.From.Segment
		}
		return nil
	}
	if e.From.Segment > 0 { // in memory alone the map would grow forever
		r.delivered[e.Call] = delivery{e.Digest, e.From.Segment}
	}
	r.groups = slices.DeleteFunc(r.groups, func(g Group) bool { return g.Key == e.Group && e.Group != "" })
	gone := map[*run]bool{}
	for _, id := range e.Sessions {
		if s := r.sessions[id]; s != nil {
			gone[s.run] = true
		}
	}
	r.forget(gone, e.From.Segment)
	return nil
}

// forget drops runs; delivered is the segment of their delivery record, 0 = none.
func (r *Recorder) forget(gone map[*run]bool, delivered int) {
	for g := range gone {
		r.cache.drop(g)
		r.held.Add(-g.disk)
		for child := range g.sessions {
			delete(r.sessions, child)
			if delivered > 0 {
				r.past[child] = delivered
			}
		}
	}
	r.runs = slices.DeleteFunc(r.runs, func(g *run) bool { return gone[g] })
}

// retire removes the segments that hold records of delivered sessions only, oldest first, so that the rest is
// contiguous.
func (r *Recorder) retire() error {
	j, first := r.opts.Journal, r.firstSegment()
	if j == nil {
		return nil
	}
	if err := j.log.Retire(first); err != nil {
		return err
	}
	for key, d := range r.delivered {
		if d.segment < first {
			delete(r.delivered, key)
		}
	}
	for id, segment := range r.past {
		if segment < first {
			delete(r.past, id)
		}
	}
	return nil
}

// firstSegment returns the first segment that is still needed.
func (r *Recorder) firstSegment() int {
	first := 0
	if j := r.opts.Journal; j != nil {
		first = j.log.Durable()
	}
	r.holds = slices.DeleteFunc(r.holds, func(h hold) bool { return h.ticket.Durable() })
	for _, h := range r.holds {
		first = min(first, h.first)
	}
	for _, g := range r.runs {
		first = min(first, g.first)
	}
	if len(r.groups) > 0 {
		first = min(first, r.groupsAt)
	}
	return first
}

// Stats counts what a recorder holds.
type Stats struct {
	Sessions int           `json:"sessions"` // held, subagents included
	Open     int           `json:"open"`     // running rollouts
	Ended    int           `json:"ended"`    // rollouts that await delivery
	Groups   int           `json:"groups"`   // complete and undelivered
	Calls    map[State]int `json:"calls"`
	Tokens   int64         `json:"tokens"` // sampled ids held
}

// Stats returns the current counts.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	out := Stats{Sessions: len(r.sessions), Groups: len(r.groups), Calls: map[State]int{}}
	runs := slices.Clone(r.runs)
	r.mu.Unlock()
	for _, g := range runs {
		g.mu.Lock()
		if g.ending == nil {
			out.Open++
		} else {
			out.Ended++
		}
		g.count(&out)
		g.mu.Unlock()
	}
	return out
}
