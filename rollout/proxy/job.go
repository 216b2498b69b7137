package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/rollout/proxy/internal/wire"
)

// job is one request to the engine, recorded, and told to all clients that ask it.
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

	mu      sync.Mutex
	meta    wire.Meta
	chunks  []*engine.Chunk // what clients may be told
	done    bool
	problem *wire.Problem
	readers map[*reader]bool
	seen    bool // a client got all of it
}

// reader is a client of a job. It is woken when there is more.
type reader struct{ more chan struct{} }

func newJob(h *Handler, s *session, d wire.Dialect, c *wire.Call, k key, a *asked) *job {
	j := &job{h: h, s: s, d: d, call: c, key: k, asked: a, readers: map[*reader]bool{}}
	j.ctx, j.cancel = context.WithCancel(h.ctx)
	return j
}

func (j *job) join() *reader {
	r := &reader{make(chan struct{}, 1)}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readers[r] = true
	return r
}

// leave says that a client is gone, or has been told everything.
func (j *job) leave(r *reader, seen bool) {
	j.mu.Lock()
	delete(j.readers, r)
	j.seen = j.seen || seen
	lost := len(j.readers) == 0 && !j.seen
	done, failed := j.done, j.problem != nil
	j.mu.Unlock()
	switch {
	case !lost || failed:
	case !done:
		if j.h.opts.AbortUnseen {
			j.cancel()
		}
	default: // the reply was durable, and could not be told
		j.h.stats.unseen.Add(1)
		for _, c := range j.calls {
			_ = j.s.live.Mark(j.h.ctx, c.ID(), live.StateUnseen, "the client was gone") // an incomplete call stays one
		}
	}
}

func (j *job) wake() {
	for r := range j.readers {
		select {
		case r.more <- struct{}{}:
		default:
		}
	}
}

// after returns what there is from chunk n on.
func (j *job) after(n int) (chunks []*engine.Chunk, done bool, p *wire.Problem, meta wire.Meta) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.chunks[n:], j.done, j.problem, j.meta
}

// run makes the call, from its intent to its durable end.
func (j *job) run() {
	defer j.h.jobs.Done()
	defer j.cancel()
	err := j.make()
	var p *wire.Problem
	if err != nil {
		if len(j.calls) > 0 {
			j.h.stats.failed.Add(1)
		}
		p = j.h.problem(err)
	}
	j.s.mu.Lock()
	switch {
	case p == nil:
		for _, c := range j.calls {
			j.asked.calls = append(j.asked.calls, c.ID())
		}
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
	if o.Enter != nil {
		leave, err := o.Enter(j.ctx, o.Engine.Route(j.call.Session), j.call.Session)
		if err != nil {
			return err
		}
		defer leave()
	}
	if o.Turn != nil {
		if err := o.Turn(j.ctx, j.s.live); err != nil {
			return err
		}
	}
	if err := j.resolve(); err != nil {
		return err
	}
	if err := j.prompt(); err != nil {
		return err
	}
	if err := j.begin(); err != nil {
		return err
	}
	j.mu.Lock()
	j.meta = wire.Meta{ID: j.calls[0].ID(), Created: time.Now(), Prompt: j.call.Prompt}
	j.mu.Unlock()
	err := o.Engine.Generate(j.ctx, &j.call.Request, j.take)
	if err == nil {
		err = j.end()
	}
	if err != nil {
		why := j.h.problem(err).Message
		if j.ctx.Err() != nil {
			why = "the client was gone"
			if j.h.ctx.Err() != nil {
				why = "the proxy was closed"
			}
		}
		j.each(func(_ int, c *live.Call) error {
			return c.Abort(context.Background(), why) // one that has ended stays as it is
		})
	}
	return err
}

// resolve puts the messages of the reply that the request goes on from before its own.
func (j *job) resolve() error {
	c := j.call
	if c.Raw == nil {
		c.Messages = j.s.live.Recall(c.Messages)
	}
	if c.Previous == "" {
		return nil
	}
	const prefix = "resp_"
	id := c.Previous
	if len(id) > len(prefix) && id[:len(prefix)] == prefix {
		id = id[len(prefix):]
	}
	info, sent, reply, err := j.s.live.Conversation(id)
	if err != nil || reply == nil || info.Finish == "" {
		return &wire.Problem{Status: http.StatusBadRequest, Type: "previous_response_not_found", Message: "the session has no reply with the id of previous_response_id"}
	}
	if m, ok := readMark(info.Settings); ok && m.Instructions <= len(sent) {
		sent = sent[m.Instructions:]
	}
	own := c.Messages
	c.Messages = make([]rollout.Message, 0, len(own)+len(sent)+1)
	c.Messages = append(append(c.Messages, own[:c.Instructions]...), sent...)
	c.Messages = append(append(c.Messages, *reply), own[c.Instructions:]...)
	return nil
}

func kwargs(c *wire.Call) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if json.Unmarshal(c.Fields["chat_template_kwargs"], &out) != nil {
		return nil
	}
	return out
}

// prompt makes the ids, where they are made here.
func (j *job) prompt() error {
	o, c := &j.h.opts, j.call
	if o.Prompter == nil || len(c.Messages) == 0 || !plainText(c) {
		return nil
	}
	ids, err := o.Prompter.Prompt(j.ctx, Prompt{j.s.live, c.Messages, c.Tools, kwargs(c)})
	if err != nil || ids == nil {
		return err
	}
	tools := c.Tools
	if string(c.Fields["tool_choice"]) == `"none"` {
		tools = nil
	}
	for range max(1, c.N) {
		p, err := o.Parser(tools, ids)
		if err != nil {
			return err
		}
		j.parsers = append(j.parsers, p)
	}
	// Of the engine's words nothing is passed on; it tells the marks that are parsed.
	c.Prompt, c.Raw = ids, nil
	fields := make(map[string]json.RawMessage, len(c.Fields)+2)
	for k, v := range c.Fields {
		fields[k] = v
	}
	fields["skip_special_tokens"], fields["spaces_between_special_tokens"] = json.RawMessage("false"), json.RawMessage("false")
	if c.Settings == nil {
		c.Settings = c.Fields
	}
	c.Fields = fields
	return nil
}

// plainText reports whether a call asks for nothing but text and free tool calls.
func plainText(c *wire.Call) bool {
	if t := string(c.Fields["tool_choice"]); t != "" && t != "null" && t != `"auto"` && t != `"none"` {
		return false
	}
	for i := range c.Messages {
		for _, p := range c.Messages[i].Parts {
			if !p.IsText() {
				return false
			}
		}
	}
	return true
}

// begin records the intent of each choice.
func (j *job) begin() error {
	c := j.call
	n := max(1, c.N)
	settings := c.Settings
	if settings == nil {
		settings = c.Fields
	}
	m := mark{Key: j.key.text(), Instructions: c.Instructions}
	if j.asked.body != j.key {
		m.Body = j.asked.body.text()
	}
	if n > 1 {
		m.Choices = n
	}
	if j.parsers != nil {
		m.Path = "ids"
	}
	calls := make([]*live.Call, n)
	errs := make([]error, n)
	one := func(i int) {
		own := m
		own.Choice = i
		all := make(map[string]json.RawMessage, len(settings)+1)
		for k, v := range settings {
			if k != "chat_template_kwargs" {
				all[k] = v
			}
		}
		all[markName] = wire.JSON(own)
		r := live.Request{Messages: c.Messages, Prompt: c.Prompt, Tools: c.Tools, TemplateKwargs: kwargs(c), Sampling: sampling(c.Fields), Dialect: j.d.Name(), Engine: j.h.opts.Engine.Route(c.Session), Settings: wire.JSON(all)}
		if i == 0 {
			r.Replaces = j.asked.old
		}
		calls[i], errs[i] = j.s.live.Begin(j.ctx, r)
	}
	if n == 1 {
		one(0)
	} else {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { one(i) })
		}
		wg.Wait()
	}
	if err := errors.Join(errs...); err != nil {
		for _, c := range calls {
			if c != nil {
				_ = c.Abort(context.Background(), "it was not sent") // the first error is told
			}
		}
		return err
	}
	j.calls = calls
	return nil
}

// sampling reads the settings that shape what is sampled; one that is none is left to the
// engine to refuse.
func sampling(f map[string]json.RawMessage) *rollout.Sampling {
	s := &rollout.Sampling{}
	number := func(name string, low, high float64) (float64, bool) {
		text := f[name]
		if text == nil {
			return 0, false
		}
		x, err := strconv.ParseFloat(string(text), 64)
		return x, err == nil && x >= low && x <= high
	}
	if x, ok := number("temperature", 0, math.MaxFloat32); ok {
		t := float32(x)
		s.Temperature = &t
	}
	if x, ok := number("top_p", math.SmallestNonzeroFloat32, 1); ok {
		t := float32(x)
		s.TopP = &t
	}
	if x, ok := number("min_p", 0, 1); ok {
		t := float32(x)
		s.MinP = &t
	}
	if x, ok := number("top_k", -1, math.MaxInt32); ok && x == math.Trunc(x) {
		t := int32(x)
		s.TopK = &t
	}
	if text := f["seed"]; text != nil {
		if x, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			s.Seed = &x
		}
	}
	if *s == (rollout.Sampling{}) {
		return nil
	}
	return s
}

// take records a chunk and passes it on, its end aside.
func (j *job) take(c *engine.Chunk) error {
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
			if version == nil && j.h.opts.Version != nil {
				version = j.h.opts.Version()
			}
			if err := j.calls[k.Index].Append(k.IDs, k.Logprobs, version); err != nil {
				return err
			}
		}
		if j.parsers != nil {
			j.parse(k)
		}
		end = end || k.Finish != ""
	}
	for i := range c.Choices { // the ids are recorded
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

// parse reads the text of a choice of an engine that was given ids.
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

// each does something for all calls at once: their records share an fsync.
func (j *job) each(do func(int, *live.Call) error) error {
	if len(j.calls) == 1 {
		return do(0, j.calls[0])
	}
	errs := make([]error, len(j.calls))
	var wg sync.WaitGroup
	for i, c := range j.calls {
		wg.Go(func() { errs[i] = do(i, c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// end records the replies, durably.
func (j *job) end() error {
	r := &j.reply
	j.mu.Lock()
	unseen := len(j.readers) == 0 && !j.seen
	j.mu.Unlock()
	why := ""
	if len(j.calls) > 1 && r.Usage.Completion > 0 {
		sum := 0
		for _, c := range j.calls {
			sum += c.Sampled()
		}
		if sum != r.Usage.Completion {
			why = "usage counts " + strconv.Itoa(r.Usage.Completion) + " completion tokens of all choices, " + strconv.Itoa(sum) + " ids are recorded"
		}
	}
	if unseen {
		j.h.stats.unseen.Add(1)
	}
	return j.each(func(i int, c *live.Call) error {
		if i >= len(r.Choices) {
			return &engine.Error{Status: http.StatusBadGateway, Message: "it tells no choice " + strconv.Itoa(i)}
		}
		k := &r.Choices[i]
		why := why
		if why == "" && k.Nameless() {
			why = "the reply has a tool call without a name"
		}
		usage := live.Usage{PromptTokens: r.Usage.Prompt}
		if len(j.calls) == 1 {
			usage.CompletionTokens = r.Usage.Completion
		}
		return c.End(context.Background(), live.Reply{ID: r.ID, Message: k.Message(), FinishReason: k.Finish, StopString: k.Stop, Usage: usage, Unseen: unseen, Incomplete: why})
	})
}

// outs are buffers of events.
var outs = sync.Pool{New: func() any { return new([]byte) }}

// tell tells a job's reply to a client as it comes. seen is true when the client has all
// of it; a problem is returned where nothing was told yet.
func (h *Handler) tell(w http.ResponseWriter, r *http.Request, d wire.Dialect, c *wire.Call, j *job, me *reader) (p *wire.Problem, seen bool) {
	ctx := r.Context()
	if !c.Stream {
		for {
			chunks, done, p, meta := j.after(0)
			if done && p != nil {
				return p, true
			}
			if done {
				body := d.Writer(c, meta).Whole(chunks)
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", strconv.Itoa(len(body)))
				w.Header().Set("X-Request-Id", meta.ID)
				_, err := w.Write(body)
				return nil, err == nil && ctx.Err() == nil
			}
			select {
			case <-ctx.Done():
				return nil, false
			case <-me.more:
			}
		}
	}
	control := http.NewResponseController(w)
	var write wire.Writer
	room := outs.Get().(*[]byte)
	out := *room
	defer func() {
		if cap(out) <= 64<<10 {
			*room = out[:0]
			outs.Put(room)
		}
	}()
	told, headed := 0, false
	alive := time.NewTimer(h.opts.KeepAlive)
	defer alive.Stop()
	for {
		chunks, done, p, meta := j.after(told)
		if done && p != nil && !headed {
			return p, true
		}
		out = out[:0]
		if write == nil && (len(chunks) > 0 || done) && meta.ID != "" {
			write = d.Writer(c, meta)
		}
		for _, x := range chunks {
			out = write.Chunk(out, x)
		}
		told += len(chunks)
		switch {
		case done && p != nil && write == nil:
			out = d.Writer(c, wire.Meta{Created: time.Now()}).Fail(out, p)
		case done && p != nil:
			out = write.Fail(out, p)
		case done:
			out = write.End(out)
		}
		if len(out) > 0 {
			if !headed {
				headed = true
				w.Header().Set("X-Request-Id", meta.ID)
				stream(w)
			}
			if _, err := w.Write(out); err != nil {
				return nil, false
			}
			if !done {
				if err := control.Flush(); err != nil {
					return nil, false
				}
			}
			alive.Reset(h.opts.KeepAlive)
		}
		if done {
			return nil, ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-me.more:
		case <-alive.C:
			if !headed {
				headed = true
				stream(w)
			}
			if _, err := w.Write(d.Writer(c, wire.Meta{}).Ping(nil)); err != nil {
				return nil, false
			}
			if err := control.Flush(); err != nil {
				return nil, false
			}
			alive.Reset(h.opts.KeepAlive)
		}
	}
}
