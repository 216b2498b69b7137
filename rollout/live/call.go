package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live/internal/log"
	"github.com/turnpack/turnpack/rollout/live/internal/prefix"
	"github.com/turnpack/turnpack/rollout/live/internal/record"
	"github.com/turnpack/turnpack/rollout/live/internal/segment"
)

// State is the state of a call.
type State string

// The states. A call is running until its end is recorded.
const (
	StateRunning    State = "running"
	StateOK         State = "ok"
	StateIncomplete State = "incomplete" // ids, log probabilities and usage differ: never trained
	StateAborted    State = "aborted"    // ended early; the ids that arrived are kept
	StateSuperseded State = "superseded" // a retry replaced it
	StateUnseen     State = "unseen"     // the client was gone when the reply arrived
)

// Relations of the prompt of a call to an earlier call.
const (
	joinFirst   = "first"   // it shares no ids with an earlier call
	joinExtends = "extends" // it begins with all ids of the other call, reply included
	joinForks   = "forks"   // it shares the beginning: a retry, a subagent, a rewritten history
	joinDrifts  = "drifts"  // it contains the other call's reply as other ids
)

// Usage holds the engine's token counts; 0 = not counted.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens,omitempty"`
	CompletionTokens int `json:"completion_tokens,omitempty"`
}

// Request describes a call before it is sent to the engine.
type Request struct {
	// Messages is the whole conversation sent, nil if only ids are known. Each distinct message is stored once.
	Messages []rollout.Message
	// Prompt holds the ids sent, nil if the engine tokenizes the messages: the reply then supplies the ids.
	Prompt         []rollout.TokenID
	Tools          []rollout.Tool
	TemplateKwargs map[string]json.RawMessage
	Sampling       *rollout.Sampling
	Agent          string // name of the agent, "" = the session's
	Dialect        string // of the client: chat, completions, responses, anthropic
	Engine         string // the engine that answers; credentials in the URL are not kept
	// Settings holds the other fields of the request, as a JSON object without the messages. Members named like
	// credential headers (Authorization, x-api-key …) are not kept.
	Settings json.RawMessage
	// Replaces is the id of a call that this call retries with a new sample. That call becomes superseded, and
	// is ended if it is running.
	Replaces string
}

// Reply is the end of a call. Output and Logprobs follow those of Call.Append. The recorder keeps the Prompt
// slice, as in Call.Prompt.
type Reply struct {
	ID           string            // of the engine's response, "" unknown
	Message      *rollout.Message  // as sent to the client, nil if only ids are known
	Prompt       []rollout.TokenID // as reported by the engine; nil if Request or Call.Prompt had it
	Output       []rollout.TokenID
	Logprobs     []float32
	Version      *int32 // weight version that sampled Output
	FinishReason string // stop, length, tool_calls, …
	StopString   string // the request's stop string that ended the reply
	Usage        Usage
	// Unseen says that the client was gone. Session.Mark can change that later.
	Unseen bool
	// Incomplete is the caller's reason why the record is not what was sampled; "" = only the counts decide.
	Incomplete string
	// Blob holds what else a trainer needs of the call (routed experts), at most Options.MaxBlob bytes.
	Blob []byte
}

// CallInfo describes a call.
type CallInfo struct {
	ID           string        `json:"id"`
	Session      string        `json:"session"`
	Agent        string        `json:"agent,omitempty"`
	Attempt      int           `json:"attempt"` // 0-based; retries count up
	Replaces     string        `json:"replaces,omitempty"`
	Dialect      string        `json:"dialect,omitempty"`
	Engine       string        `json:"engine,omitempty"`
	State        State         `json:"state"`
	Why          string        `json:"why,omitempty"` // reason for a state other than ok
	Used         bool          `json:"used"`          // a later prompt continues the whole reply
	PromptTokens int           `json:"prompt_tokens"`
	Kept         int           `json:"kept_tokens"`    // prompt ids shared with earlier calls
	Join         string        `json:"join,omitempty"` // first, extends, forks or drifts
	Base         string        `json:"base,omitempty"` // the call that Join relates to
	Drift        int           `json:"drift"`          // ids of the base call, reply included, that the prompt replaces by others
	OutputTokens int           `json:"output_tokens"`
	BlobBytes    int           `json:"blob_bytes,omitempty"`
	Usage        Usage         `json:"usage"`
	Finish       string        `json:"finish_reason,omitempty"`
	Version      *int32        `json:"version,omitempty"`
	Began        time.Time     `json:"began"`
	First        time.Duration `json:"first"` // from Began to the first id, 0 = none arrived
	Took         time.Duration `json:"took"`
	// Settings is Request.Settings as recorded.
	Settings json.RawMessage `json:"-"`
}

// call is a call of a run.
type call struct {
	CallInfo
	context    rollout.Context // that was sent
	otherTools bool
	sampling   *rollout.Sampling
	open       bool // its end is not recorded
	turn       int  // index in run.turns, −1 = none
	blob       []byte
	from       segment.Place // place of the reply's record, for the blob
	live       *partial      // while it runs in this process
}

// partial holds what has arrived of a running call.
type partial struct {
	began    time.Time
	first    time.Duration
	prompt   []rollout.TokenID
	output   []rollout.TokenID
	logprobs []float32
	versions []rollout.VersionRun
	why      string // why the call is incomplete
}

// Call is a running call. Its methods are safe for concurrent use; only the first End or Abort has an effect.
type Call struct {
	session *Session
	call    *call
}

// ID returns the call's id.
func (c *Call) ID() string {
	if c.call == nil {
		return ""
	}
	return c.call.ID
}

// whileRunning runs do under the lock of the rollout if the call is running.
func (c *Call) whileRunning(do func(g *run, p *partial) error) error {
	if c.call == nil {
		return zeroValue("live.Call", "Session.Begin")
	}
	g := c.session.run
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.call.live == nil {
		return input(ErrFinished, g.where(), "call %q is %s: %w", c.call.ID, c.call.State, ErrFinished)
	}
	return do(g, c.call.live)
}

// Prompt supplies the prompt's ids as the engine reports them, if the request had none. If they differ from the
// request's ids, the call is incomplete. The recorder keeps the slice; it must not be changed.
func (c *Call) Prompt(ids []rollout.TokenID) error {
	return c.whileRunning(func(g *run, p *partial) error { return p.take(g, ids, nil, nil, nil) })
}

// Append adds sampled ids that arrived, with one log probability each or nil, and the version of the weights
// that sampled them, nil = unknown. Beyond Options.MaxTokens it returns an error, and the caller should abort
// the call.
func (c *Call) Append(ids []rollout.TokenID, logprobs []float32, version *int32) error {
	return c.whileRunning(func(g *run, p *partial) error {
		if p.first == 0 && len(ids) > 0 {
			p.first = max(1, g.rec.opts.Now().Sub(p.began))
		}
		return p.take(g, nil, ids, logprobs, version)
	})
}

func (p *partial) take(g *run, prompt, ids []rollout.TokenID, logprobs []float32, version *int32) error {
	if n, most := max(len(p.prompt), len(prompt))+len(p.output)+len(ids), g.rec.opts.MaxTokens; n > most {
		return limit("MaxTokens", "the call has %d ids, at most %d are allowed", n, most)
	} else if n := len(p.logprobs) + len(logprobs); n > most {
		return limit("MaxTokens", "the call has %d log probabilities, at most %d are allowed", n, most)
	}
	switch {
	case len(prompt) == 0:
	case p.prompt == nil:
		p.prompt = prompt
	case !slices.Equal(p.prompt, prompt):
		p.markIncomplete("the prompt that the engine tells is not the one that was sent")
		p.prompt = prompt // what the model saw
	}
	if version != nil && len(ids) > 0 {
		if n := len(p.versions); n == 0 && len(p.output) > 0 {
			p.markIncomplete("the version of the first tokens is not known")
		} else if *version < 0 {
			p.markIncomplete("version %d is negative", *version)
		} else if n == 0 || p.versions[n-1].Version != *version {
			p.versions = append(p.versions, rollout.VersionRun{From: len(p.output), Version: *version})
		}
	}
	if len(logprobs) != len(ids) && logprobs != nil {
		p.markIncomplete("%d log probabilities came with %d ids", len(logprobs), len(ids))
	}
	p.output = append(p.output, ids...)
	p.logprobs = append(p.logprobs, logprobs...)
	return nil
}

func (p *partial) markIncomplete(format string, args ...any) {
	if p.why == "" {
		p.why = fmt.Sprintf(format, args...)
	}
}

// checkCounts compares the ids that arrived with the engine's counts, and leaves only values that a rollout can
// hold.
func (p *partial) checkCounts(u Usage, vocab int, whole bool) {
	for name, ids := range map[string]*[]rollout.TokenID{"prompt": &p.prompt, "output": &p.output} {
		for i, id := range *ids {
			if id < 0 || vocab > 0 && int(id) >= vocab {
				p.markIncomplete("%s token %d is id %d, which is none of the model's", name, i, id)
				if id < 0 {
					*ids = (*ids)[:i]
					break
				}
			}
		}
	}
	if n := len(p.versions); n > 0 && p.versions[n-1].From >= len(p.output) {
		p.versions = slices.DeleteFunc(p.versions, func(r rollout.VersionRun) bool { return r.From >= len(p.output) })
	}
	for i, lp := range p.logprobs {
		switch {
		case lp > 0 && lp <= maxRounding:
			p.logprobs[i] = 0
		case !(lp <= 0 && lp >= -math.MaxFloat32):
			p.markIncomplete("log probability %d is %g, no finite number of at most 0", i, lp)
			p.logprobs = nil
		}
		if p.logprobs == nil {
			break
		}
	}
	if len(p.logprobs) != len(p.output) {
		if len(p.output) > 0 {
			p.markIncomplete("%d log probabilities for %d ids", len(p.logprobs), len(p.output))
		}
		p.logprobs = nil
	}
	if len(p.prompt) == 0 && len(p.output) > 0 {
		p.markIncomplete("the ids of the prompt are not recorded")
	}
	if !whole {
		return
	}
	if n := u.PromptTokens; n != 0 && n != len(p.prompt) {
		p.markIncomplete("usage counts %d prompt tokens, %d ids are recorded", n, len(p.prompt))
	}
	if n := u.CompletionTokens; n != 0 && n != len(p.output) {
		p.markIncomplete("usage counts %d completion tokens, %d ids are recorded", n, len(p.output))
	}
	if len(p.output) == 0 {
		p.markIncomplete("no sampled ids are recorded")
	}
}

// maxRounding is the largest positive log probability accepted as a rounding error of 0.
const maxRounding = 1e-3

// End records the reply and returns when it is durable: only then may the client learn that the reply has
// ended. If ctx ends earlier, the reply is still recorded and the error is the context's. A reply whose counts
// differ is recorded as incomplete, which is not an error: Session.Calls reports it.
func (c *Call) End(ctx context.Context, r Reply) error {
	return c.finish(ctx, func(g *run, p *partial) (*record.Entry, error) {
		if n, most := len(r.Blob), g.rec.opts.MaxBlob; n > most {
			return nil, limit("MaxBlob", "the blob has %d bytes, at most %d are allowed", n, most)
		}
		if err := p.take(g, r.Prompt, r.Output, r.Logprobs, r.Version); err != nil {
			return nil, err
		}
		p.checkCounts(r.Usage, g.rec.opts.Vocab, true)
		if r.Incomplete != "" {
			p.markIncomplete("%s", r.Incomplete)
		}
		e := &record.Entry{State: string(StateOK), Blob: r.Blob}
		switch {
		case p.why != "":
			e.State, e.Why = string(StateIncomplete), p.why
		case r.Unseen:
			e.State, e.Why = string(StateUnseen), "the client was gone"
		}
		if r.Usage != (Usage{}) {
			e.Usage = (*record.Usage)(&r.Usage)
		}
		t := rollout.Turn{ID: r.ID, FinishReason: r.FinishReason, StopString: r.StopString}
		g.fill(c.call, e, t, r.Message)
		return e, nil
	})
}

// Abort records durably that the call ended early, with the ids that arrived. The reason is a few words.
func (c *Call) Abort(ctx context.Context, reason string) error {
	return c.finish(ctx, func(g *run, p *partial) (*record.Entry, error) { return g.aborted(c.call, StateAborted, reason), nil })
}

func (c *Call) finish(ctx context.Context, make func(g *run, p *partial) (*record.Entry, error)) error {
	var t *log.Ticket
	err := c.whileRunning(func(g *run, p *partial) error {
		e, err := make(g, p)
		if err == nil {
			t, err = g.record(e, false)
		}
		return err
	})
	if err == nil {
		err = t.Wait(ctx)
	}
	if errors.Is(err, ErrUnavailable) {
		c.session.run.drop(c.call) // a reply that is not recorded is not trained
	}
	return err
}

// aborted returns the record of a call that ends with the ids that arrived.
func (g *run) aborted(c *call, state State, why string) *record.Entry {
	p := c.live
	p.checkCounts(Usage{}, g.rec.opts.Vocab, false)
	e := &record.Entry{State: string(state), Why: strings.ToValidUTF8(why, "\uFFFD")}
	if p.why != "" {
		e.State, e.Why = string(StateIncomplete), e.Why+"; "+p.why
	}
	g.fill(c, e, rollout.Turn{FinishReason: "abort"}, nil)
	return e
}

// fill completes the record of a reply.
func (g *run) fill(c *call, e *record.Entry, t rollout.Turn, m *rollout.Message) {
	p, now := c.live, g.rec.opts.Now()
	e.Kind, e.Session, e.Call, e.At = record.Reply, c.Session, c.ID, now.UnixNano()
	e.First, e.Took = int64(p.first), int64(max(0, now.Sub(p.began)))
	at, kept := g.prefixes.Match(prefix.Place{}, p.prompt)
	if kept > 0 {
		e.Base, e.Keep = g.prefixes.Turn(at), kept
	}
	t.Message = -1
	t.Prompt.Add = p.prompt[kept:]
	if len(p.output) > 0 {
		t.Output, t.Logprobs = p.output, p.logprobs
	}
	if len(p.versions) > 0 {
		t.Version = &p.versions[0].Version
		if len(p.versions) > 1 {
			t.Versions = p.versions
		}
	}
	e.Body = &rollout.Rollout{ID: c.Session, Turns: []rollout.Turn{t}}
	if m != nil {
		reply := *m
		reply.Role, reply.Sampled = rollout.RoleAssistant, rollout.SampledByPolicy
		e.Body.Messages = []rollout.Message{reply}
	}
}
