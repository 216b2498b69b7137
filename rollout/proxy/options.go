package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
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

	// Prompts make the exact prompts here, nil = the engine renders them: it is given ids,
	// and its text is read here. A call that asks for what only an engine's chat
	// completions can do (a tool that must be called, images) goes there all the same.
	Prompts Prompts
	// Gate is asked before sessions' calls are sent, and tells which weights sample;
	// nil = one that is open. While it has the policy continue, a call that is given ids
	// ends its request, and asks for the rest of its reply after the pause, with the ids
	// sampled so far as the end of the prompt: one recorded call. Calls whose text the
	// engine reads, of several choices, or that stop strings, penalties or a schema
	// shape, go on to their end.
	Gate *gate.Gate

	// AbortUnseen stops the engine when the last client of a call is gone, and keeps
	// what came. Otherwise the reply is recorded to its end.
	AbortUnseen bool

	KeepAlive time.Duration // of streams; 0 = 5 s
	MaxBody   int64         // bytes of a request, as sent and decompressed; 0 = 32 MiB
	MaxCalls  int           // requests that run; 0 = 4,096
}

// validate reports all faults at once.
func (o Options) validate() error {
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
	if o.KeepAlive < 0 || o.MaxBody < 0 || o.MaxCalls < 0 {
		fault("MaxBody", "a bound is negative, expected 0 for the default or more")
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	o.KeepAlive, o.MaxBody, o.MaxCalls = cmp.Or(o.KeepAlive, 5*time.Second), cmp.Or(o.MaxBody, 32<<20), cmp.Or(o.MaxCalls, 4096)
	if o.Gate == nil {
		o.Gate = &gate.Gate{}
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

// Prompts make prompts in ids and read the replies to them (package tokenize/exact).
type Prompts interface {
	// Prompt makes the exact ids that the model is to see. No ids and no error: this one
	// is for the engine to render.
	Prompt(ctx context.Context, p Prompt) ([]rollout.TokenID, error)
	// Parser makes what reads one reply.
	Parser(tools []rollout.Tool, prompt []rollout.TokenID) (Parser, error)
	// Decode tells the text of ids, control tokens included: a Parser takes a stop
	// token's for the end.
	Decode(ids []rollout.TokenID) (string, error)
}

// Parser reads the text of one reply as it comes. What it returns are the text, the
// reasoning and the calls that are new; other fields are not looked at.
type Parser interface {
	Push(text string) engine.Choice
	Close() engine.Choice
}
