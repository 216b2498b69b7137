package gate

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// The policies of a pause.
const (
	hold       = "hold"
	reject     = "reject"
	finish     = "finish"
	continuing = "continue"
)

// Options configures New. The zero value has the default limits.
type Options struct {
	// MaxCalls limits the running calls of each engine, 0 = 1,024; further calls wait.
	MaxCalls int
	// MaxPerSession limits the running calls of a session, 0 = 64; further calls wait.
	MaxPerSession int
	// MaxWaiting limits the waiting calls, 0 = 4,096; further calls are refused.
	MaxWaiting int
	// Full returns why no session may begin now, "" if one may; nil = sessions may always begin. It must not
	// block.
	Full func() string
	Caps Caps
	Now  func() time.Time // nil = time.Now
}

// Caps truncate a rollout that reaches one; 0 = no cap.
type Caps struct {
	Turns  int           // calls with a reply
	Tokens int           // sampled ids
	Time   time.Duration // since its first call
}

// validate reports all invalid fields at once.
func (o Options) validate() error {
	var l faults.List
	l.Count("MaxCalls", o.MaxCalls)
	l.Count("MaxPerSession", o.MaxPerSession)
	l.Count("MaxWaiting", o.MaxWaiting)
	l.Count("Caps.Turns", o.Caps.Turns)
	l.Count("Caps.Tokens", o.Caps.Tokens)
	l.Count("Caps.Time", int(o.Caps.Time))
	return l.Err()
}

// refusal is the error of a call or a session that is refused.
type refusal struct {
	error               // located, of KindLimit, with a fix
	after time.Duration // time to retry, 0 = never
}

func (e *refusal) Unwrap() error { return e.error }

// retryAfter is when a refused client may retry.
const retryAfter = 2 * time.Second

// Answer returns the HTTP status for an error of a call, and the value of Retry-After, "" for none: 429 for
// limits, 503 if the journal cannot record or the machine fails at a file, 409 for a session that has ended, 404 for an unknown session, 400
// for other bad input.
func Answer(err error) (status int, after string) {
	const badRequest, notFound, conflict, tooMany, internal, unavailable = 400, 404, 409, 429, 500, 503
	wait := time.Second
	refused, ok := errors.AsType[*refusal](err)
	_, path := errors.AsType[*fs.PathError](err)
	_, number := errors.AsType[syscall.Errno](err)
	if ok {
		wait = refused.after
	}
	after = strconv.Itoa(int(max(1, wait/time.Second)))
	switch {
	case ok && wait == 0:
		return badRequest, "" // retrying changes nothing
	case path || number || errors.Is(err, live.ErrUnavailable):
		return unavailable, after
	case errors.Is(err, rollout.KindLimit):
		return tooMany, after
	case errors.Is(err, live.ErrFinished), errors.Is(err, live.ErrConflict):
		return conflict, ""
	case errors.Is(err, live.ErrUnknown):
		return notFound, ""
	case errors.Is(err, rollout.KindInput):
		return badRequest, ""
	}
	return internal, ""
}

// Gate admits calls and sessions. The zero value is open and has the default limits. Its methods are safe for
// concurrent use.
type Gate struct {
	opts Options

	mu       sync.Mutex
	paused   string // "" = not paused
	version  *int32
	running  int
	engines  map[string]int // running calls
	sessions map[string]int
	waiting  []*waiter // in the order of their arrival, calls of Again first
	idle     []chan struct{}
	stop     chan struct{} // closed while the policy is "continue"
	stats    Stats
}

type waiter struct {
	engine, session string
	again           bool          // it ran before, and is not refused
	admitted        chan struct{} // closed under the lock when the call runs or is refused
	refused         error         // set before admitted is closed if the call is refused
}

// New makes an open gate.
func New(o Options) (*Gate, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Gate{opts: o}, nil
}

// lock locks the gate, and fills in the defaults the first time.
func (g *Gate) lock() {
	g.mu.Lock()
	if g.engines != nil {
		return
	}
	o := &g.opts
	o.MaxCalls = cmp.Or(o.MaxCalls, 1024)
	o.MaxPerSession = cmp.Or(o.MaxPerSession, 64)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 4096)
	g.stop = make(chan struct{})
	g.engines, g.sessions, g.stats.Refused = map[string]int{}, map[string]int{}, map[string]int64{}
}

// Session returns an error if no new session may begin: during a "reject" pause, and as long as Options.Full
// says so. Running sessions continue.
func (g *Gate) Session() error {
	why := ""
	if g.opts.Full != nil {
		why = g.opts.Full()
	}
	g.lock()
	defer g.mu.Unlock()
	switch {
	case why != "":
		return g.refuse("full", "no session may begin: %s", why)
	case g.paused == reject:
		return g.refuse("paused", "calls are paused while the weights change")
	}
	return nil
}

// Enter returns when the call may be sent; the call then counts as running until leave is called, which may be
// repeated. Enter waits during a pause and while the limit of running calls is reached. It returns an error if
// MaxWaiting calls wait already, and the context's error if that ends first.
func (g *Gate) Enter(ctx context.Context, engine, session string) (leave func(), err error) {
	return g.enter(ctx, &waiter{engine: engine, session: session, admitted: make(chan struct{})})
}

// Again is Enter for a call that stopped because of Stop and has left: no limit and no pause refuses it, and it
// precedes calls that have not run.
func (g *Gate) Again(ctx context.Context, engine, session string) (leave func(), err error) {
	return g.enter(ctx, &waiter{engine: engine, session: session, again: true, admitted: make(chan struct{})})
}

func (g *Gate) enter(ctx context.Context, w *waiter) (leave func(), err error) {
	g.lock()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case w.again && !g.fits(w):
		at := slices.IndexFunc(g.waiting, func(x *waiter) bool { return !x.again })
		if at < 0 {
			at = len(g.waiting)
		}
		g.waiting = slices.Insert(g.waiting, at, w)
		g.stats.Waited++
	case g.paused == reject:
		err = g.refuse("paused", "calls are paused while the weights change")
	case g.fits(w) && !slices.ContainsFunc(g.waiting, g.fits):
		g.admit(w)
	case len(g.waiting) >= g.opts.MaxWaiting:
		err = g.refuse("waiting", "%d calls wait, at most %d may", len(g.waiting), g.opts.MaxWaiting)
	default:
		g.waiting = append(g.waiting, w)
		g.stats.Waited++
	}
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-w.admitted:
	case <-ctx.Done():
		g.lock()
		defer g.mu.Unlock()
		select {
		case <-w.admitted: // admitted at the same time
			if w.refused == nil {
				g.leave(w)
			}
		default:
			g.waiting = slices.DeleteFunc(g.waiting, func(x *waiter) bool { return x == w })
		}
		return nil, ctx.Err()
	}
	if w.refused != nil {
		return nil, w.refused
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			g.lock()
			defer g.mu.Unlock()
			g.leave(w)
		})
	}, nil
}

func (g *Gate) fits(w *waiter) bool {
	return g.paused == "" && g.engines[w.engine] < g.opts.MaxCalls && g.sessions[w.session] < g.opts.MaxPerSession
}

func (g *Gate) admit(w *waiter) {
	g.running++
	g.engines[w.engine]++
	g.sessions[w.session]++
	g.stats.Entered++
	close(w.admitted)
}

func (g *Gate) leave(w *waiter) {
	g.running--
	for counts, key := range map[*map[string]int]string{&g.engines: w.engine, &g.sessions: w.session} {
		if (*counts)[key]--; (*counts)[key] == 0 {
			delete(*counts, key)
		}
	}
	if g.running == 0 {
		for _, done := range g.idle {
			close(done)
		}
		g.idle = nil
	}
	g.next()
}

// next admits waiting calls in their order, as far as the limits allow.
func (g *Gate) next() {
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool {
		fits := g.fits(w)
		if fits {
			g.admit(w)
		}
		return fits
	})
}

// set changes the policy, "" = none. The caller holds the lock.
func (g *Gate) set(p string) {
	switch {
	case p == continuing && g.paused != continuing:
		close(g.stop)
	case p != continuing && g.paused == continuing:
		g.stop = make(chan struct{})
	}
	g.paused = p
}

// Stop returns a channel that is closed when running calls should stop, leave, and continue with Again.
func (g *Gate) Stop() <-chan struct{} {
	g.lock()
	defer g.mu.Unlock()
	return g.stop
}

// Pause begins a pause, or changes the policy of the current one. Policy p applies to new calls: with "hold"
// they wait for Resume, with "reject" they are refused; with "finish" they wait, and Pause returns when no call
// is running. "continue" is "finish", but running calls stop where they can, and continue after Resume from the
// ids sampled so far. If ctx ends while calls are running, the pause stays in force.
func (g *Gate) Pause(ctx context.Context, p string) error {
	if p != hold && p != reject && p != finish && p != continuing {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "policy"}, "found %q, expected hold, reject, finish or continue", p)
	}
	g.lock()
	g.set(p)
	if p == reject {
		g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool {
			if !w.again {
				w.refused = g.refuse("paused", "calls are paused while the weights change")
				close(w.admitted)
			}
			return !w.again
		})
	}
	if p != finish && p != continuing || g.running == 0 {
		g.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	g.idle = append(g.idle, done)
	g.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		g.lock()
		defer g.mu.Unlock()
		g.idle = slices.DeleteFunc(g.idle, func(x chan struct{}) bool { return x == done })
		return ctx.Err()
	}
}

// Resume ends a pause.
func (g *Gate) Resume() {
	g.lock()
	defer g.mu.Unlock()
	g.set("")
	g.next()
}

// SetVersion sets the version of the weights that sample from now on.
func (g *Gate) SetVersion(version int32) error {
	if version < 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "version"}, "found %d, expected 0 or more", version)
	}
	g.lock()
	defer g.mu.Unlock()
	g.version = &version
	return nil
}

// Version returns the version given to SetVersion, nil if none was: the version of tokens for which the engine
// reports none.
func (g *Gate) Version() *int32 {
	g.lock()
	defer g.mu.Unlock()
	return g.version
}

// capWords begin the reason of the aborted call that records a truncation.
const capWords = "truncated: "

// Turn refuses a call of a rollout that has reached a cap. The first refusal is recorded as an aborted call
// with the reason, so that Truncated returns it after a restart too.
func (g *Gate) Turn(ctx context.Context, s *live.Session) error {
	c, now := g.opts.Caps, g.opts.Now
	if now == nil {
		now = time.Now
	}
	if c == (Caps{}) {
		return nil
	}
	calls, err := s.Calls()
	if err != nil {
		return err
	}
	why := Truncated(calls)
	recorded := why != ""
	if !recorded {
		why = c.reached(calls, now())
	}
	if why == "" {
		return nil
	}
	if !recorded {
		call, err := s.Begin(ctx, live.Request{})
		if err == nil {
			err = call.Abort(ctx, capWords+why)
		}
		if err != nil {
			return err
		}
	}
	g.lock()
	defer g.mu.Unlock()
	g.stats.Refused["cap"]++
	return &refusal{rollout.Errorf(rollout.KindLimit, rollout.Where{Rollout: s.ID()}, "the rollout is at its cap: %s", why).WithFix("end it, or raise the cap"), 0}
}

func (c Caps) reached(calls []live.CallInfo, now time.Time) string {
	turns, tokens := 0, 0
	for _, x := range calls {
		if x.OutputTokens > 0 {
			turns++
			tokens += x.OutputTokens
		}
	}
	switch {
	case c.Turns > 0 && turns >= c.Turns:
		return strconv.Itoa(turns) + " turns"
	case c.Tokens > 0 && tokens >= c.Tokens:
		return strconv.Itoa(tokens) + " tokens"
	case c.Time > 0 && len(calls) > 0 && now.Sub(calls[0].Began) >= c.Time:
		return c.Time.String()
	}
	return ""
}

// Truncated returns the cap at which a call of the rollout was refused, "" if none was.
func Truncated(calls []live.CallInfo) string {
	for _, c := range calls {
		if why, ok := strings.CutPrefix(c.Why, capWords); ok && c.State == live.StateAborted {
			return why
		}
	}
	return ""
}

// refuse counts a refusal and returns it. The caller holds the lock.
func (g *Gate) refuse(reason, format string, args ...any) *refusal {
	g.stats.Refused[reason]++
	return &refusal{rollout.Errorf(rollout.KindLimit, rollout.Where{}, format, args...).WithFix("ask again later"), retryAfter}
}

// Stats describes the calls of a gate.
type Stats struct {
	Running int              `json:"running"`
	Waiting int              `json:"waiting"`
	Paused  string           `json:"paused,omitempty"`
	Version *int32           `json:"version,omitempty"`
	Engines map[string]int   `json:"engines"` // running calls
	Entered int64            `json:"entered"` // calls admitted so far
	Waited  int64            `json:"waited"`  // calls that had to wait
	Refused map[string]int64 `json:"refused"` // by reason
}

// Stats returns the current counts.
func (g *Gate) Stats() Stats {
	g.lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Running, s.Waiting, s.Paused, s.Version = g.running, len(g.waiting), g.paused, g.version
	s.Engines, s.Refused = maps.Clone(g.engines), maps.Clone(g.stats.Refused)
	return s
}
