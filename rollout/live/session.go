package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
	"github.com/turnpack/turnpack/rollout/live/internal/record"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// Start describes a session when it begins.
type Start struct {
	ID string // "" = a generated id
	// Parent is the session whose rollout contains this session's calls, for a subagent; the fields after Agent
	// are then ignored, and the parent's rollout supplies them.
	Parent string
	Agent  string // name of the agent, "" if there is only one

	Group    string // GRPO group
	Index    int    // 0-based index in its group
	Instance string // task instance
	Metadata map[string]json.RawMessage
}

// Ending describes how a rollout ended.
type Ending struct {
	Group      string // with Index; "" = the values of Start
	Index      int
	Outcome    rollout.Outcome
	Status     rollout.Status
	ExitStatus string
	Failure    *rollout.Failure // a failure that the policy did not cause
	Metadata   map[string]json.RawMessage
}

// Session is one agent's conversation. Its methods are safe for concurrent use.
type Session struct {
	run    *run
	id     string
	parent string
	agent  string
	ended  bool
	digest string // of a child session's ending
}

// ID returns the session's id, which without a parent is also the rollout's id.
func (s *Session) ID() string { return s.id }

// Parent returns the id of the session whose subagent this session is, "" for none.
func (s *Session) Parent() string { return s.parent }

// lock locks the session's rollout, after loading its content.
func (s *Session) lock() (*run, error) {
	if s.run == nil {
		return nil, zeroValue("live.Session", "Recorder.Begin")
	}
	return s.run, s.run.lock()
}

// lockCall locks the session's rollout and returns a call of it.
func (s *Session) lockCall(id string) (*run, *call, error) {
	g, err := s.lock()
	if err != nil {
		return nil, nil, err
	}
	c := g.calls[id]
	if c == nil {
		g.mu.Unlock()
		return nil, nil, input(ErrUnknown, g.where(), "call %q: %w", id, ErrUnknown)
	}
	return g, c, nil
}

func (s *Session) open() error {
	switch {
	case s.run.ending != nil:
		return input(ErrFinished, s.run.where(), "the rollout takes no more calls: %w", ErrFinished)
	case s.ended:
		return input(ErrFinished, s.run.where(), "session %q takes no more calls: %w", s.id, ErrFinished)
	}
	return nil
}

// Begin records a call before it is sent, and returns it: the record outlives the process, and its fsync begins
// at most 5 ms later. Begin fails with ErrFinished after the end of the session, with ErrUnavailable while the
// journal cannot record, and with KindLimit beyond a limit. It copies what it keeps of the request.
func (s *Session) Begin(ctx context.Context, r Request) (*Call, error) {
	g, err := s.lock()
	if err != nil {
		return nil, err
	}
	c, t, err := s.begin(ctx, &g.rec.opts, r)
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := t.WaitNew(ctx); err != nil {
		// The call is not sent, but records queued in the journal are still written.
		over, cancel := context.WithCancel(ctx)
		cancel()
		if e := c.Abort(over, "it was not sent"); e != nil && !errors.Is(e, context.Canceled) {
			g.drop(c.call)
		}
		return nil, err
	}
	return c, nil
}

func (s *Session) begin(ctx context.Context, o *Options, r Request) (*Call, *log.Ticket, error) {
	g := s.run
	if err := s.open(); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	switch {
	case len(g.order) >= o.MaxCalls:
		return nil, nil, limit("MaxCalls", "rollout %q has %d calls, at most %d are allowed", g.id, len(g.order), o.MaxCalls)
	case g.running >= o.MaxInFlight:
		return nil, nil, limit("MaxInFlight", "%d calls of rollout %q run, at most %d may", g.running, g.id, o.MaxInFlight)
	case len(r.Prompt) > o.MaxTokens:
		return nil, nil, limit("MaxTokens", "the prompt has %d ids, at most %d are allowed", len(r.Prompt), o.MaxTokens)
	}
	old := g.calls[r.Replaces]
	if r.Replaces != "" && old == nil {
		return nil, nil, input(ErrUnknown, g.where(), "call %q is to be replaced: %w", r.Replaces, ErrUnknown)
	}
	id, now := o.NewID(), o.Now()
	if id == "" || g.calls[id] != nil {
		return nil, nil, input(ErrConflict, g.where(), "the id %q of a new call is empty or taken: %w", id, ErrConflict)
	}
	if old != nil && old.live != nil {
		if _, err := g.record(g.aborted(old, StateSuperseded, "a retry replaces it"), false); err != nil {
			return nil, nil, err
		}
	}
	t := rollout.Turn{Message: -1, Agent: s.agent, Sampling: r.Sampling}
	if r.Agent != "" {
		t.Agent = r.Agent
	}
	body := &rollout.Rollout{ID: s.id}
	t.Context.Parts, body.Messages = g.matchMessages(r.Messages)
	e := &record.Entry{Kind: record.Intent, Session: s.id, Call: id, Replaces: r.Replaces, Dialect: r.Dialect, Engine: r.Engine, Settings: r.Settings, At: now.UnixNano(), Body: body}
	if e.OtherTools = g.otherTools(&r); e.OtherTools || g.kwargs == nil {
		body.Tools, body.TemplateKwargs = r.Tools, maps.Clone(r.TemplateKwargs)
	}
	body.Turns = []rollout.Turn{t}
	done, err := g.record(e, true)
	if err != nil {
		return nil, nil, err
	}
	c := g.calls[id]
	c.Began = now // has the monotonic clock, unlike the recorded time
	c.live = &partial{began: now, prompt: slices.Clone(r.Prompt)}
	return &Call{s, c}, done, nil
}

// Mark changes the state of a call that ended: to unseen if the client could not be given the reply, to ok if a
// retry delivered it after all, to superseded if something else took its place. An incomplete call stays
// incomplete.
func (s *Session) Mark(ctx context.Context, id string, state State, why string) error {
	g, c, err := s.lockCall(id)
	if err != nil {
		return err
	}
	t, err := func() (*log.Ticket, error) {
		switch {
		case state != StateOK && state != StateUnseen && state != StateSuperseded:
			return nil, rollout.Errorf(rollout.KindInput, g.where(), "a call cannot be marked %q", state).WithFix("use ok, unseen or superseded")
		case c.State == StateRunning || c.State == StateIncomplete || c.State == StateAborted && state == StateOK:
			return nil, input(ErrConflict, g.where(), "call %q is %s and cannot be marked %s: %w", id, c.State, state, ErrConflict)
		case c.State == state:
			return nil, nil
		}
		if g.ending != nil {
			return nil, s.open()
		}
		return g.record(&record.Entry{Kind: record.Mark, Session: s.id, Call: id, State: string(state), Why: why, At: g.rec.opts.Now().UnixNano()}, false)
	}()
	g.mu.Unlock()
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// End records the end of the session durably and returns its rollout. Running calls are aborted and keep the
// ids that arrived. Repeating the same ending returns the same result; another ending is ErrConflict. A session
// with a parent records only that it ended: the ending belongs to the parent's rollout, and the rollout
// returned is the current one.
func (s *Session) End(ctx context.Context, x Ending) (*rollout.Rollout, error) {
	g, err := s.lock()
	if err != nil {
		return nil, err
	}
	t, r, err := s.end(x)
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := t.Wait(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (s *Session) end(x Ending) (*log.Ticket, *rollout.Rollout, error) {
	g := s.run
	body := &rollout.Rollout{ID: s.id, Group: x.Group, Index: x.Index, Outcome: x.Outcome, Status: x.Status, ExitStatus: x.ExitStatus, Failure: x.Failure, Metadata: maps.Clone(x.Metadata)}
	e := &record.Entry{Kind: record.End, Session: s.id, At: g.rec.opts.Now().UnixNano(), Body: body}
	if err := e.Scrub(); err != nil {
		return nil, nil, err
	}
	text, err := jsonl.Append(nil, body)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(text)
	e.Digest = hex.EncodeToString(sum[:])
	root := s.id == g.id
	ended, digest := s.ended, s.digest
	if root {
		digest = g.digest
	}
	switch {
	case ended && digest == e.Digest:
		return g.settled, g.snapshot(), nil
	case ended:
		return nil, nil, input(ErrConflict, g.where(), "session %q ended otherwise: %w", s.id, ErrConflict).WithFix("give each attempt an id of its own")
	case g.ending != nil:
		return nil, nil, s.open()
	case root:
		if err := body.Validate(); err != nil {
			return nil, nil, err
		}
	}
	for _, c := range g.order {
		if c.live != nil && (root || c.Session == s.id) {
			if _, err := g.record(g.aborted(c, StateAborted, "the session ended"), false); err != nil {
				return nil, nil, err
			}
		}
	}
	t, err := g.record(e, false)
	if err != nil {
		return nil, nil, err
	}
	if root {
		g.settled = t
	}
	return t, g.snapshot(), nil
}

// Rollout returns the current rollout that contains the session's calls: the turns of all ended calls of all
// its sessions. A turn that is not trained holds the reason (rollout.Turn.Incomplete). Ids are shared and
// read-only; later records do not change the value.
func (s *Session) Rollout() (*rollout.Rollout, error) {
	g, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer g.mu.Unlock()
	return g.snapshot(), nil
}

// Ended reports whether the session accepts no more calls.
func (s *Session) Ended() bool {
	if s.run == nil {
		return true
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.open() != nil
}

// Calls returns the calls of the session's rollout in the order in which they began. It fails if they must be
// read from the journal and cannot be.
func (s *Session) Calls() ([]CallInfo, error) {
	g, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer g.mu.Unlock()
	out := make([]CallInfo, len(g.order))
	for i, c := range g.order {
		out[i] = c.CallInfo
	}
	return out, nil
}

// Conversation returns a call of the session's rollout, the messages sent and the reply, nil if none is
// recorded. The messages are shared and read-only.
func (s *Session) Conversation(id string) (info CallInfo, sent []rollout.Message, reply *rollout.Message, err error) {
	g, c, err := s.lockCall(id)
	if err != nil {
		return info, nil, nil, err
	}
	defer g.mu.Unlock()
	for _, p := range c.context.Parts {
		if p.Message != nil {
			sent = append(sent, *p.Message)
		} else if p.From >= 0 && p.From <= p.To && p.To <= len(g.messages) {
			sent = append(sent, g.messages[p.From:p.To]...)
		}
	}
	if c.turn >= 0 && g.turns[c.turn].Message >= 0 {
		reply = &g.messages[g.turns[c.turn].Message]
	}
	return c.CallInfo, sent, reply, nil
}

// Turn returns the turn of a call of the session's rollout, with its whole prompt in Prompt.Add; nil if the call
// recorded none. Its ids are shared and read-only.
func (s *Session) Turn(id string) (*rollout.Turn, error) {
	g, c, err := s.lockCall(id)
	if err != nil {
		return nil, err
	}
	defer g.mu.Unlock()
	if c.turn < 0 {
		return nil, nil
	}
	t := g.turns[c.turn]
	t.Incomplete = c.untrained()
	prompt, err := (&rollout.Rollout{ID: g.id, Turns: g.turns}).PromptTokens(nil, c.turn)
	t.Prompt = rollout.PromptIDs{Add: prompt}
	return &t, err
}

// Recall returns the messages of a request with sampled tool calls as the policy wrote them, since clients that
// parse their arguments send them back reformatted.
func (s *Session) Recall(messages []rollout.Message) []rollout.Message {
	g, err := s.lock()
	if err != nil {
		return messages
	}
	defer g.mu.Unlock()
	return g.restoreSampled(messages)
}

// Blob returns the opaque blob of a call, nil if it has none. The caller owns the bytes.
func (s *Session) Blob(id string) ([]byte, error) {
	var durable segment.Place
	for {
		text, at, last, err := s.blob(id, durable)
		if last == nil || err != nil {
			return text, err
		}
		if err := last.Wait(context.Background()); err != nil { // without the lock: a full disk may take its time
			return nil, err
		}
		durable = at
	}
}

// blob returns the blob of a call if its record is known to be durable, and else the place of that record and a
// ticket to wait for. It reads under the lock, since records move when the journal is compacted.
func (s *Session) blob(id string, durable segment.Place) (text []byte, at segment.Place, last *log.Ticket, err error) {
	g, c, err := s.lockCall(id)
	if err != nil {
		return nil, at, nil, err
	}
	defer g.mu.Unlock()
	if c.BlobBytes == 0 || c.blob != nil {
		return slices.Clone(c.blob), at, nil, nil
	}
	if c.from != durable && g.last != nil && !g.last.Durable() {
		return nil, c.from, g.last, nil
	}
	e, err := (&reader{dir: g.rec.opts.Journal.dir}).entry(c.from)
	if err != nil {
		return nil, at, nil, err
	}
	return e.Blob, at, nil, nil
}
