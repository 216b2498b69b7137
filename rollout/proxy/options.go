package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Options of a Handler. Recorder and Engine are needed.
type Options struct {
	Recorder *live.Recorder
	Engine   engine.Engine

	// Open begins a session that a request names and that is not known yet. nil =
	// sessions are begun elsewhere, and an unknown one is answered 401.
	Open func(ctx context.Context, s live.Start) (*live.Session, error)
	// Secret is what minted tokens are made with: the same one makes them hold after a
	// restart. nil = a random one.
	Secret []byte
	// TokenOnly: the id of a session alone opens nothing, its token is needed.
	TokenOnly bool

	// Prompter and Parser, both set, make the exact prompts here: the engine is given
	// ids and its text is read here. A call that asks for what only an engine's chat
	// completions can do (a tool that must be called, images) goes there all the same.
	Prompter Prompter
	Parser   func(tools []rollout.Tool, prompt []rollout.TokenID) (Parser, error)

	// Enter is asked before a call is sent, and may wait; leave is called at its end
	// (Gate.Enter of package rollout/live/gate).
	Enter func(ctx context.Context, engine, session string) (leave func(), err error)
	// Stop is closed when a pause wants the calls that run to stop. A call that is given
	// ids ends its request then, leaves, and asks for the rest of its reply, with the ids
	// sampled so far as the end of the prompt, when Again returns (Gate.Stop, Gate.Again):
	// one recorded call. It needs Decode, which tells the text of ids, control tokens
	// included, of which the Parser takes a stop token's for the end. Calls whose text
	// the engine reads, of several choices, or that stop strings, penalties or a schema
	// shape, go on to their end.
	Stop   func() <-chan struct{}
	Again  func(ctx context.Context, engine, session string) (leave func(), err error)
	Decode func(ids []rollout.TokenID) (string, error)
	// Turn is asked before a call begins, with its session (Gate.Turn).
	Turn func(ctx context.Context, s *live.Session) error
	// Answer gives the status and the Retry-After of an error of Open, Enter, Turn and
	// the recorder; nil = 429 for bounds, 503 where the journal cannot record, 409 for
	// a session that has ended, 400 for other bad input, else 500.
	Answer func(err error) (status int, retryAfter string)
	// Version is that of the weights now, for replies that do not tell theirs.
	Version func() *int32

	// AbortUnseen stops the engine when the last client of a call is gone, and keeps
	// what came. Otherwise the reply is recorded to its end.
	AbortUnseen bool
	// RepeatSamples: a request with the body of an earlier one is a new sample, unless
	// it says that it is a retry, by its Idempotency-Key or X-Stainless-Retry-Count.
	RepeatSamples bool

	KeepAlive time.Duration // of streams; 0 = 5 s
	MaxBody   int64         // bytes of a request, as sent and decompressed; 0 = 32 MiB
	MaxCalls  int           // requests that run; 0 = 4,096
}

// Validate reports all faults at once.
func (o Options) Validate() error {
	var errs []error
	fault := func(field, format string, args ...any) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, format, args...))
	}
	if o.Recorder == nil {
		fault("Recorder", "is nil: make one with live.New")
	}
	if o.Engine == nil {
		fault("Engine", "is nil: make one with engine.New")
	}
	if (o.Prompter == nil) != (o.Parser == nil) {
		fault("Prompter", "Prompter and Parser go together: an engine that is given ids answers text")
	}
	if (o.Stop == nil) != (o.Again == nil) {
		fault("Stop", "Stop and Again go together: a call that stops has to go on")
	}
	if o.KeepAlive < 0 || o.MaxBody < 0 || o.MaxCalls < 0 {
		fault("MaxBody", "a bound is negative, expected 0 for the default or more")
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	o.KeepAlive, o.MaxBody, o.MaxCalls = cmp.Or(o.KeepAlive, 5*time.Second), cmp.Or(o.MaxBody, 32<<20), cmp.Or(o.MaxCalls, 4096)
	if o.Answer == nil {
		o.Answer = answer
	}
	return o
}

// Prompt is a conversation whose ids are wanted.
type Prompt struct {
	Session  *live.Session // nil = none: only the count is wanted
	Messages []rollout.Message
	Tools    []rollout.Tool
	Kwargs   map[string]json.RawMessage // template variables
}

// Prompter makes the exact ids that the model is to see. No ids and no error: this one is
// for the engine to render.
type Prompter interface {
	Prompt(ctx context.Context, p Prompt) ([]rollout.TokenID, error)
}

// Parser reads the text of one reply as it comes. What it returns are the text, the
// reasoning and the calls that are new; other fields are not looked at.
type Parser interface {
	Push(text string) engine.Choice
	Close() engine.Choice
}

func answer(err error) (status int, retryAfter string) {
	switch {
	case errors.Is(err, live.ErrUnavailable):
		return http.StatusServiceUnavailable, "1"
	case errors.Is(err, rollout.KindLimit):
		return http.StatusTooManyRequests, "1"
	case errors.Is(err, live.ErrFinished), errors.Is(err, live.ErrConflict):
		return http.StatusConflict, ""
	case errors.Is(err, live.ErrUnknown):
		return http.StatusUnauthorized, ""
	case errors.Is(err, rollout.KindInput), errors.Is(err, rollout.KindFormat):
		return http.StatusBadRequest, ""
	}
	return http.StatusInternalServerError, ""
}
