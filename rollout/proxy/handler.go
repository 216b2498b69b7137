package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/proxy/internal/anthropic"
	"github.com/turnpack/turnpack/rollout/proxy/internal/openai"
	"github.com/turnpack/turnpack/rollout/proxy/internal/responses"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// Handler serves clients. New makes one.
type Handler struct {
	opts   Options
	secret []byte

	ctx    context.Context
	cancel context.CancelFunc
	jobs   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
	sweepAt  int // number of sessions at which unused ones are dropped

	running  atomic.Int64
	bodyTime time.Duration
	stats    counters
}

type counters struct {
	requests, joined, replayed, refused, failed, unseen atomic.Int64
}

// Stats counts what a handler did.
type Stats struct {
	Running  int64 `json:"running"`
	Requests int64 `json:"requests"`
	Joined   int64 `json:"joined"`   // retries that joined a running call
	Replayed int64 `json:"replayed"` // retries that got the recorded reply
	Refused  int64 `json:"refused"`  // answered with an error before a call began
	Failed   int64 `json:"failed"`   // calls that the engine did not complete
	Unseen   int64 `json:"unseen"`   // calls whose client was gone
}

// New checks the options and returns a handler.
func New(o Options) (*Handler, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	h := &Handler{opts: o.withDefaults(), secret: o.Secret, sessions: map[string]*session{}, sweepAt: mostIdle, bodyTime: bodyTime}
	if len(h.secret) == 0 {
		h.secret = []byte(rand.Text())
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// Close aborts the running calls, which keep the ids that arrived, and waits for them. To drain, shut the
// server down first, and call Drain.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	if h.cancel != nil {
		h.cancel()
	}
	h.jobs.Wait()
}

// Drain waits for the running calls, including those without a client. If ctx ends first, it returns the cause.
func (h *Handler) Drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() { h.jobs.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stats returns the current counts.
func (h *Handler) Stats() Stats {
	s := &h.stats
	return Stats{h.running.Load(), s.requests.Load(), s.joined.Load(), s.replayed.Load(), s.refused.Load(), s.failed.Load(), s.unseen.Load()}
}

// endpoints maps the paths that clients use to dialects.
var endpoints = map[string]struct {
	dialect wire.Dialect
	method  string
}{
	"chat/completions":      {openai.Chat, http.MethodPost},
	"completions":           {openai.Completions, http.MethodPost},
	"responses":             {responses.Dialect{}, http.MethodPost},
	"messages":              {anthropic.Dialect{}, http.MethodPost},
	"messages/count_tokens": {anthropic.Dialect{}, http.MethodPost},
	"models":                {nil, http.MethodGet},
}

// dialectOf returns the dialect of a request whose path belongs to none.
func dialectOf(r *http.Request) wire.Dialect {
	if r.Header.Get("Anthropic-Version") != "" {
		return anthropic.Dialect{}
	}
	return openai.Chat
}

// ServeHTTP answers a client.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.opts.Engine == nil {
		if w != nil {
			h.fail(w, openai.Chat, &wire.Problem{Status: http.StatusInternalServerError, Message: "proxy.Handler is used as its zero value: make it with New"})
		}
		return
	}
	h.stats.requests.Add(1)
	if r.Body != nil && r.Body != http.NoBody {
		h.limitBodyTime(w)
	}
	path, what, ok := splitPath(r.URL)
	e, there := endpoints[what]
	if !there && strings.HasPrefix(what, "models/") {
		e, there = endpoints["models"], true
	}
	d := e.dialect
	if d == nil {
		d = dialectOf(r)
	}
	var p *wire.Problem
	switch {
	case !ok || !there:
		p = &wire.Problem{Status: http.StatusNotFound, Message: "there is nothing at this path: the base URL of OpenAI's clients is /rollouts/ID/v1, that of Anthropic's /rollouts/ID"}
	case r.Method != e.method && !(r.Method == http.MethodHead && e.method == http.MethodGet):
		w.Header().Set("Allow", e.method)
		p = &wire.Problem{Status: http.StatusMethodNotAllowed, Message: "the method is " + e.method}
	}
	if p == nil {
		p = h.serve(w, r, path, what, d)
	}
	if p != nil {
		h.stats.refused.Add(1)
		h.fail(w, d, p)
	}
}

// serve answers a request, or returns why it is refused.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, path, what string, d wire.Dialect) *wire.Problem {
	id, parent, p := h.identify(r, path)
	if p != nil {
		return p
	}
	if h.running.Add(1) > int64(h.opts.MaxCalls) {
		h.running.Add(-1)
		return &wire.Problem{Status: http.StatusTooManyRequests, RetryAfter: "1", Message: "too many requests run: at most " + strconv.Itoa(h.opts.MaxCalls) + " may"}
	}
	defer h.running.Add(-1)
	if r.Method != http.MethodPost {
		return h.models(w, r, id, strings.TrimPrefix(strings.TrimPrefix(what, "models"), "/"))
	}
	body, err := h.body(w, r)
	if err != nil {
		return h.problem(err)
	}
	call, err := d.Parse(body)
	if err != nil {
		return h.problem(err)
	}
	call.Request.Session = id
	if what == "messages/count_tokens" {
		return h.count(w, r, call)
	}
	s, err := h.find(r, id, parent)
	if err != nil {
		return h.problem(err)
	}
	defer h.release(s)
	return h.reply(w, r, s, d, call, body)
}

// problem converts an error for a client.
func (h *Handler) problem(err error) *wire.Problem {
	var p *wire.Problem
	var e *engine.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &e):
		out := &wire.Problem{Status: e.Status, Type: e.Type, Message: e.Message}
		if e.Status >= 500 || e.Status == http.StatusTooManyRequests {
			out.Message = e.Error()
		}
		switch {
		case e.RetryAfter > 0:
			out.RetryAfter = strconv.Itoa(int((e.RetryAfter + 999_999_999) / 1_000_000_000))
		case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests:
			out.RetryAfter = "1"
		}
		return out
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &wire.Problem{Status: http.StatusServiceUnavailable, RetryAfter: "1", Message: "the call was ended before its reply was whole"}
	}
	status, after := gate.Answer(err)
	if status == http.StatusServiceUnavailable { // agents should not learn where the record is
		return &wire.Problem{Status: status, RetryAfter: after, Message: live.ErrUnavailable.Error() + " now: ask again later"}
	}
	return &wire.Problem{Status: status, RetryAfter: after, Message: rollout.Printable(err.Error())}
}

func (h *Handler) fail(w http.ResponseWriter, d wire.Dialect, p *wire.Problem) {
	if p.RetryAfter != "" {
		w.Header().Set("Retry-After", p.RetryAfter)
	}
	_ = send(w, p.Status, d.Error(p)) // a client that is gone needs no answer
}

func send(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}

// known returns a problem if a session does not exist and Open could not begin it.
func (h *Handler) known(id string) *wire.Problem {
	if _, ok := h.opts.Recorder.Session(id); !ok && h.opts.Open == nil {
		return &wire.Problem{Status: http.StatusUnauthorized, Message: "the session is not known"}
	}
	return nil
}

func (h *Handler) models(w http.ResponseWriter, r *http.Request, id, model string) *wire.Problem {
	if p := h.known(id); p != nil {
		return p
	}
	list, err := h.opts.Engine.Models(r.Context())
	if err != nil {
		return h.problem(err)
	}
	if model != "" {
		found := openai.Model(list, model)
		if found == nil {
			return &wire.Problem{Status: http.StatusNotFound, Message: "the engine has no model of that name"}
		}
		list = found
	}
	_ = send(w, http.StatusOK, list)
	return nil
}

// count answers with the exact number of ids of a prompt.
func (h *Handler) count(w http.ResponseWriter, r *http.Request, c *wire.Call) *wire.Problem {
	if p := h.known(c.Session); p != nil {
		return p
	}
	var ids []rollout.TokenID
	var err error
	s, _ := h.opts.Recorder.Session(c.Session)
	if s != nil {
		c.Messages = s.Recall(c.Messages)
	}
	if h.opts.Prompts != nil && plainText(c) {
		ids, err = h.opts.Prompts.Prompt(r.Context(), Prompt{s, c.Messages, c.Tools, kwargs(c)})
	}
	if err == nil && ids == nil {
		ids, err = h.opts.Engine.Tokenize(r.Context(), &c.Request)
	}
	if err != nil {
		return h.problem(err)
	}
	_ = send(w, http.StatusOK, wire.JSON(map[string]int{"input_tokens": len(ids)}))
	return nil
}

// reply answers a call: with a new reply, a running one, or one that has ended.
func (h *Handler) reply(w http.ResponseWriter, r *http.Request, s *session, d wire.Dialect, c *wire.Call, body []byte) *wire.Problem {
	at := digest([]byte(d.Name()), body)
	k, given := at, r.Header.Get("Idempotency-Key")
	if given != "" {
		k = digest([]byte(d.Name()), []byte("key"), []byte(given))
	}
	s.mu.Lock()
	if err := s.load(); err != nil {
		s.mu.Unlock()
		return h.problem(err)
	}
	a := s.asked[k]
	switch {
	case a != nil && a.body != at:
		s.mu.Unlock()
		return &wire.Problem{Status: http.StatusConflict, Message: "the Idempotency-Key was used with another body"}
	case a == nil:
		a = &asked{body: at}
		s.asked[k] = a
	}
	j, calls := a.job, a.calls
	switch {
	case j != nil:
		h.stats.joined.Add(1)
	case calls != nil:
		h.stats.replayed.Add(1)
	default:
		j = newJob(h, s, d, c, k, a)
		h.mu.Lock()
		if h.closed {
			h.mu.Unlock()
			s.mu.Unlock()
			return &wire.Problem{Status: http.StatusServiceUnavailable, RetryAfter: "5", Message: "the proxy is shutting down"}
		}
		h.jobs.Add(1)
		s.users++
		h.mu.Unlock()
		a.job, a.seen = j, false
		go j.run()
	}
	a.clients++ // before the job ends, or the reply would be unseen
	s.mu.Unlock()
	var p *wire.Problem
	var seen bool
	if j != nil {
		p, seen = h.sendReply(w, r, d, c, j)
	} else {
		p, seen = h.replay(w, r, s, d, c, calls)
	}
	h.leave(s, a, seen)
	return p
}

// replay sends a recorded reply again. It returns what sendReply does.
func (h *Handler) replay(w http.ResponseWriter, r *http.Request, s *session, d wire.Dialect, c *wire.Call, calls []string) (p *wire.Problem, seen bool) {
	chunk := &engine.Chunk{Usage: &engine.Usage{}}
	meta := wire.Meta{ID: calls[0]}
	var unseen []string
	for i, id := range calls {
		info, _, reply, err := s.live.Conversation(id)
		var t *rollout.Turn
		if err == nil {
			t, err = s.live.Turn(id)
		}
		if err != nil {
			return h.problem(err), false
		}
		if reply == nil {
			return &wire.Problem{Status: http.StatusConflict, Message: "the reply was given and is not recorded as a message"}, false
		}
		chunk.Prompt = t.Prompt.Add
		k := engine.Choice{Index: i, Text: reply.Content, Reasoning: reply.Reasoning, Finish: info.Finish, Stop: t.StopString, IDs: t.Output, Logprobs: t.Logprobs}
		for n, x := range reply.ToolCalls {
			k.Calls = append(k.Calls, engine.CallDelta{Index: n, ID: x.ID, Name: x.Name, Arguments: x.Arguments})
		}
		chunk.Choices = append(chunk.Choices, k)
		if chunk.Usage.Prompt = info.PromptTokens; info.Usage.PromptTokens > 0 {
			chunk.Usage.Prompt = info.Usage.PromptTokens
		}
		if info.Usage.CompletionTokens > 0 { // for several replies the engine counts the sum
			chunk.Usage.Completion = info.Usage.CompletionTokens
		} else {
			chunk.Usage.Completion += info.OutputTokens
		}
		if i == 0 {
			meta.Created = info.Began
		}
		if info.State == live.StateUnseen {
			unseen = append(unseen, id)
		}
	}
	chunk.Model = c.Model()
	h.markSeen(r.Context(), s, unseen, true) // before the client can end the rollout
	err := r.Context().Err()
	switch write := d.Writer(c, meta); {
	case err != nil:
	case c.Stream:
		stream(w)
		_, err = w.Write(write.End(write.Chunk(nil, chunk)))
	default:
		err = send(w, http.StatusOK, write.Whole([]*engine.Chunk{chunk}))
	}
	return nil, err == nil
}

func stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}
