package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
)

// Engine samples replies. Its methods are safe for concurrent use.
type Engine interface {
	// Generate requests a reply and yields its chunks in order, until it is complete. The receiver of a chunk
	// may keep and change it. Generate returns an *Error if the engine or the stream fails, and the error of
	// yield or of ctx if one of them ends the reply, which also stops the engine. It does not resample what was
	// yielded.
	Generate(ctx context.Context, r *Request, yield func(*Chunk) error) error
	// Tokenize returns the ids of a request's prompt.
	Tokenize(ctx context.Context, r *Request) ([]rollout.TokenID, error)
	// Models returns the engine's answer to GET /v1/models.
	Models(ctx context.Context) (json.RawMessage, error)
	// Route returns the name of the server that serves a session now.
	Route(session string) string
	// Status returns the state of each server.
	Status() []Status
	// Close closes idle connections.
	Close()
}

// Request is one call, with messages or with ids.
type Request struct {
	Session string // calls of a session go to one engine, which caches its prefix

	Messages []rollout.Message
	Tools    []rollout.Tool
	Prompt   []rollout.TokenID // instead of Messages: the exact ids
	Text     string            // instead of both: a prompt to tokenize literally
	// Fields holds the other fields of the request, named as in OpenAI's chat completions and the engine's
	// additions to them: model, temperature, max_tokens, stop …
	Fields map[string]json.RawMessage
	// Raw is the whole request as a JSON object in the format of OpenAI's chat completions, or of completions
	// if there are no Messages. An engine of that dialect gets these bytes with the fields that it needs added;
	// an engine of another dialect uses the fields above.
	Raw []byte
	// The parts of the reply that the client itself requested, which stay in Chunk.Raw.
	KeepUsage, KeepLogprobs, KeepIDs bool

	Stream bool
	N      int // number of replies, 0 = 1
	// IDsOnly: the ids of the reply suffice, see Chunk.NoText.
	IDsOnly bool
}

// Chunk is a part of a reply.
type Chunk struct {
	ID      string
	Model   string
	Prompt  []rollout.TokenID // the prompt as the engine tokenized it, in one chunk of a reply
	Choices []Choice
	Usage   *Usage
	// Raw is the chunk in the engine's own format, without what the client did not ask for. It answers
	// Request.Raw and is nil otherwise; it is empty if nothing is left. Whole says that the chunk is a whole
	// reply and not an event of a stream.
	Raw   []byte
	Whole bool
	// NoText says that the engine returned ids alone, which Request.IDsOnly permits: the choices have no text,
	// and no stop string has ended them.
	NoText bool
}

// Choice is what a chunk adds to one reply.
type Choice struct {
	Index    int
	IDs      []rollout.TokenID
	Logprobs []float32 // one for each of IDs; nil = none arrived
	Version  *int32    // of the weights that sampled IDs

	Text      string
	Reasoning string
	Calls     []CallDelta

	Finish string // stop, length, tool_calls …; "" = not finished
	Stop   string // the request's stop string that ended it
}

// CallDelta is what a chunk adds to a tool call.
type CallDelta struct {
	Index     int
	ID        string // in the first delta of a call, with Name
	Name      string
	Arguments string
}

// Usage holds the engine's token counts over all choices.
type Usage struct {
	Prompt, Completion int
	Cached             int // of Prompt, found in the prefix cache
}

// Status is the state of one server.
type Status struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version,omitempty"` // of the server
	// Streams says whether streams with tools contain every id, according to Probe and the replies since:
	// "unknown", "every id", or "drops ids", after which such calls are requested unstreamed.
	Streams string    `json:"streams"`
	Down    time.Time `json:"down_until,omitzero"` // ejected until then
	Why     string    `json:"why,omitempty"`       // the last failure
	Running int       `json:"running"`
	Calls   int64     `json:"calls"`
	Failed  int64     `json:"failed"`
}

// Error is a refusal or failure of an engine, with its HTTP status.
type Error struct {
	Status     int
	Type       string // from the engine's answer, "" = none
	Message    string
	RetryAfter time.Duration
	Err        error // cause, nil = none
}

// Error returns the message with its status.
func (e *Error) Error() string {
	return fmt.Sprintf("the engine: %s (%d %s)", e.Message, e.Status, http.StatusText(e.Status))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// broken returns the error for a reply that cannot be passed to a client.
func broken(cause error, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadGateway, Message: rollout.Printable(fmt.Sprintf(format, args...)), Err: cause}
}

// The kinds of server, see Options.Kind.
const (
	kindVLLM       = "vllm"
	kindVLLMTokens = "vllm-tokens"
	kindSGLang     = "sglang"
)

func (r *Request) choices() int { return max(1, r.N) }

func (r *Request) chat() bool { return r.Prompt == nil && len(r.Messages) > 0 }

// clean shortens an engine's error text and replaces invalid UTF-8.
func clean(s string) string {
	const most = 2000
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
