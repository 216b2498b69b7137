package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// job is one request to the engine, which is recorded and sent to all clients that request it.
type job struct {
	h       *Handler
	s       *session
	d       wire.Dialect
	call    *wire.Call
	key     key
	asked   *asked
	ctx     context.Context
	cancel  context.CancelFunc
	calls   []*live.Call
	parsers []Parser
	reply   wire.Reply
	held    []*engine.Chunk // the end of the reply, until it is durable
	text    *detokenizer    // for an engine that returns ids alone
	rest    *pausable       // of a reply that a pause may stop
	why     string          // why the reply is incomplete
	sampled int             // number of ids that arrived

	mu      sync.Mutex
	meta    wire.Meta
	chunks  []*engine.Chunk // what clients may receive
	done    bool
	problem *wire.Problem
	more    chan struct{} // closed at each change, and replaced
	unseen  bool          // the reply is recorded as unseen
}

func newJob(h *Handler, s *session, d wire.Dialect, c *wire.Call, k key, a *asked) *job {
	j := &job{h: h, s: s, d: d, call: c, key: k, asked: a, more: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(h.ctx)
	return j
}

// leave removes a client of a request that is gone or has received everything.
func (h *Handler) leave(s *session, a *asked, seen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.clients--
	a.seen = a.seen || seen
	switch {
	case a.clients > 0 || a.seen:
	case a.job != nil:
		if h.opts.AbortUnseen {
			a.job.cancel()
		}
	case a.calls != nil: // the reply is durable and no client could receive it
		h.stats.unseen.Add(1)
		ctx, cancel := context.WithCancel(h.ctx)
		cancel() // a retry waits for the lock, not for the disk
		h.markSeen(ctx, s, a.calls, false)
	}
}

// markSeen records whether a client gets the replies of calls. An incomplete call stays incomplete.
func (h *Handler) markSeen(ctx context.Context, s *session, calls []string, seen bool) {
	state, why := live.StateUnseen, goneWhy
	if seen {
		state, why = live.StateOK, ""
	}
	for _, id := range calls {
		_ = s.live.Mark(ctx, id, state, why)
	}
}

const goneWhy = "the client was gone"

// wake tells the clients of a change. The caller holds the lock.
func (j *job) wake() {
	close(j.more)
	j.more = make(chan struct{})
}

// after returns the chunks from index n on, and a channel that is closed when there is more.
func (j *job) after(n int) (chunks []*engine.Chunk, more <-chan struct{}, done bool, p *wire.Problem, meta wire.Meta) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.chunks[n:], j.more, j.done, j.problem, j.meta
}

// run makes the call, from its intent to its durable end.
func (j *job) run() {
	defer j.h.jobs.Done()
	defer j.h.release(j.s)
	defer j.cancel()
	err := j.make()
	var p *wire.Problem
	if err != nil {
		if len(j.calls) > 0 {
			j.h.stats.failed.Add(1)
		}
		p = j.h.problem(err)
	}
	var calls []string
	for _, c := range j.calls {
		calls = append(calls, c.ID())
	}
	j.s.mu.Lock()
	for p == nil && j.unseen == (j.asked.clients > 0) { // clients came or left while the end became durable
		j.unseen = !j.unseen
		j.s.mu.Unlock()
		if j.unseen {
			j.h.stats.unseen.Add(1)
		}
		j.h.markSeen(j.h.ctx, j.s, calls, !j.unseen)
		j.s.mu.Lock()
	}
	switch {
	case p == nil:
		j.asked.calls = calls
	case len(j.calls) > 0:
		j.asked.old = j.calls[0].ID()
	default:
		if j.s.asked[j.key] == j.asked && j.asked.old == "" {
			delete(j.s.asked, j.key)
		}
	}
	j.asked.job = nil
	j.s.mu.Unlock()

	j.mu.Lock()
	defer j.mu.Unlock()
	if p == nil {
		j.chunks = append(j.chunks, j.held...)
	}
	j.done, j.problem = true, p
	j.wake()
}

func (j *job) make() error {
	o := &j.h.opts
	leave, err := o.Gate.Enter(j.ctx, o.Engine.Route(j.call.Session), j.call.Session)
	if err != nil {
		return err
	}
	if err := j.prepare(); err != nil {
		leave()
		return err
	}
	j.mu.Lock()
	j.meta = wire.Meta{ID: j.calls[0].ID(), Created: time.Now(), Prompt: j.call.Prompt}
	j.mu.Unlock()
	if err = j.generate(leave); err == nil {
		err = j.end()
	}
	if err != nil {
		why := j.h.problem(err).Message
		if j.ctx.Err() != nil {
			why = goneWhy
			if j.h.ctx.Err() != nil {
				why = "the proxy was closed"
			}
		}
		j.each(func(_ int, c *live.Call) error {
			return c.Abort(context.Background(), why) // one that has ended is unchanged
		})
	}
	return err
}

// prepare makes the prompt and records the intent.
func (j *job) prepare() error {
	if err := j.h.opts.Gate.Turn(j.ctx, j.s.live); err != nil {
		return err
	}
	if err := j.resolve(); err != nil {
		return err
	}
	if err := j.prompt(); err != nil {
		return err
	}
	return j.begin()
}

// take records a chunk and passes it on, except for the end of the reply.
func (j *job) take(c *engine.Chunk) error {
	if c.NoText {
		if j.text == nil {
			j.text = &detokenizer{decode: j.h.opts.Prompts.Decode, tail: contextIDs(j.call.Prompt)}
		}
		for i := range c.Choices {
			k := &c.Choices[i]
			var err error
			if k.Text, err = j.text.push(k.IDs, k.Finish != ""); err != nil {
				return err
			}
		}
	}
	if j.rest != nil {
		if err := j.rest.track(c); err != nil {
			return err
		}
	}
	if c.Prompt != nil {
		for _, call := range j.calls {
			if err := call.Prompt(c.Prompt); err != nil {
				return err
			}
		}
	}
	end := len(c.Choices) == 0
	for i := range c.Choices {
		k := &c.Choices[i]
		if len(k.IDs) > 0 || len(k.Logprobs) > 0 {
			version := k.Version
			if version == nil {
				version = j.h.opts.Gate.Version()
			}
			if err := j.calls[k.Index].Append(k.IDs, k.Logprobs, version); err != nil {
				return err
			}
			j.sampled += len(k.IDs)
		}
		if j.parsers != nil {
			j.parse(k)
		}
		end = end || k.Finish != ""
	}
	for i := range c.Choices { // the ids are recorded and no longer needed
		if !j.call.KeepIDs && !j.call.KeepLogprobs {
			c.Choices[i].IDs, c.Choices[i].Logprobs = nil, nil
		}
	}
	if !j.call.KeepIDs && c.Prompt != nil {
		if j.meta.Prompt == nil {
			j.mu.Lock()
			j.meta.Prompt = c.Prompt
			j.mu.Unlock()
		}
		c.Prompt = nil
	}
	j.reply.Add(c)
	if end || j.held != nil && len(j.calls) == 1 {
		j.held = append(j.held, c)
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.chunks = append(j.chunks, c)
	j.wake()
	return nil
}

// parse parses the text of a choice of an engine that was given ids.
func (j *job) parse(k *engine.Choice) {
	p := j.parsers[k.Index]
	out := p.Push(k.Text)
	if k.Finish != "" {
		last := p.Close()
		out.Text, out.Reasoning, out.Calls = out.Text+last.Text, out.Reasoning+last.Reasoning, append(out.Calls, last.Calls...)
	}
	k.Text, k.Reasoning, k.Calls = out.Text, out.Reasoning, out.Calls
	for i := range k.Calls {
		if x := &k.Calls[i]; x.Name != "" && x.ID == "" {
			x.ID = "call_" + j.calls[k.Index].ID() + "_" + strconv.Itoa(x.Index)
		}
	}
	called := len(k.Calls) > 0 || k.Index < len(j.reply.Choices) && j.reply.Choices[k.Index].Called()
	if k.Finish == "stop" && called {
		k.Finish = "tool_calls"
	}
}

// each runs do for all calls concurrently, so that their records share an fsync.
func (j *job) each(do func(int, *live.Call) error) error {
	return atOnce(len(j.calls), func(i int) error { return do(i, j.calls[i]) })
}

// atOnce runs do n times concurrently.
func atOnce(n int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// end records the replies durably.
func (j *job) end() error {
	r := &j.reply
	j.s.mu.Lock()
	j.unseen = j.asked.clients == 0
	j.s.mu.Unlock()
	why := j.why
	if len(j.calls) > 1 && r.Usage.Completion > 0 && j.sampled != r.Usage.Completion {
		why = "usage counts " + strconv.Itoa(r.Usage.Completion) + " completion tokens of all choices, " + strconv.Itoa(j.sampled) + " ids are recorded"
	}
	if j.unseen {
		j.h.stats.unseen.Add(1)
	}
	return j.each(func(i int, c *live.Call) error {
		if i >= len(r.Choices) {
			return &engine.Error{Status: http.StatusBadGateway, Message: "it tells no choice " + strconv.Itoa(i)}
		}
		k := r.Choices[i]
		why := why
		if why == "" && k.Nameless() {
			why = "the reply has a tool call without a name"
		}
		usage := live.Usage{PromptTokens: r.Usage.Prompt}
		if len(j.calls) == 1 {
			usage.CompletionTokens = r.Usage.Completion
		}
		return c.End(context.Background(), live.Reply{ID: r.ID, Message: k.Message(), FinishReason: k.Finish, StopString: k.Stop, Usage: usage, Unseen: j.unseen, Incomplete: why})
	})
}
