package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Options configures a Handler. Recorder and Engine are required.
type Options struct {
	Recorder *live.Recorder
	Engine   engine.Engine

	// Open begins an unknown session that a request names; nil = sessions are begun elsewhere, and an unknown
	// one is answered with 401.
	Open func(ctx context.Context, s live.Start) (*live.Session, error)
	// Secret signs the session tokens: with the same secret they stay valid after a restart. nil = a random
	// one.
	Secret []byte
	// TokenOnly: a session id alone is refused, its token is required.
	TokenOnly bool

	// Prompts makes the exact prompts in the proxy: the engine gets ids, and the proxy parses its text. nil =
	// the engine renders the prompts. A call that needs an engine's chat completions (a required tool, images)
	// is sent there even so.
	Prompts Prompts
	// Gate admits calls before they are sent and supplies the version of the weights; nil = a gate that is
	// open. During a "continue" pause, a call with a prompt of ids ends its request, and after the pause
	// requests the rest of its reply with the ids sampled so far at the end of the prompt: one recorded call.
	// Calls whose text the engine parses, that have several choices, or whose sampling depends on stop strings,
	// penalties or a schema run to their end.
	Gate *gate.Gate

	// AbortUnseen stops the engine when the last client of a call is gone, and keeps the ids that arrived.
	// Otherwise the reply is recorded to its end.
	AbortUnseen bool

	KeepAlive time.Duration // of streams; 0 = 5 s
	MaxBody   int64         // bytes of a request, as sent and decompressed; 0 = 32 MiB
	MaxCalls  int           // concurrent requests; 0 = 4,096
}

// validate reports all invalid fields at once.
func (o Options) validate() error {
	var l faults.List
	if o.Recorder == nil {
		l.Add("Recorder", "is nil: make one with live.New")
	}
	if o.Engine == nil {
		l.Add("Engine", "is nil: make one with engine.New")
	}
	l.Count("KeepAlive", int(o.KeepAlive))
	l.Count("MaxBody", int(o.MaxBody))
	l.Count("MaxCalls", o.MaxCalls)
	return l.Err()
}

func (o Options) withDefaults() Options {
	o.KeepAlive, o.MaxBody, o.MaxCalls = cmp.Or(o.KeepAlive, 5*time.Second), cmp.Or(o.MaxBody, 32<<20), cmp.Or(o.MaxCalls, 4096)
	if o.Gate == nil {
		o.Gate = &gate.Gate{}
	}
	return o
}

// Prompt is a conversation to tokenize.
type Prompt struct {
	Session  *live.Session // nil = no session: only the count is needed
	Messages []rollout.Message
	Tools    []rollout.Tool
	Kwargs   map[string]json.RawMessage // template variables
}

// Prompts makes prompts of ids and parses the replies to them (package tokenize/exact).
type Prompts interface {
	// Prompt returns the exact ids that the model is to see. No ids and no error means that the engine should
	// render the conversation.
	Prompt(ctx context.Context, p Prompt) ([]rollout.TokenID, error)
	// Parser returns a parser for one reply.
	Parser(tools []rollout.Tool, prompt []rollout.TokenID) (Parser, error)
	// Decode returns the text of ids, control tokens included: a Parser recognizes the end by the text of a
	// stop token.
	Decode(ids []rollout.TokenID) (string, error)
}

// Parser parses the text of one reply as it arrives. Its results hold the new text, reasoning and tool calls;
// other fields are ignored.
type Parser interface {
	Push(text string) engine.Choice
	Close() engine.Choice
}
