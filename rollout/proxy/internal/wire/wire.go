// Package wire is what the dialects of clients have in common: a call in neutral terms,
// the reading of requests (read.go), and replies put together from chunks (reply.go).
package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/turnpack/turnpack/internal/jsonscan"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// Call is what a client asks, in neutral terms.
type Call struct {
	engine.Request
	// Previous is the id of the reply that the conversation goes on from, "" = the
	// request has all of it. Instructions counts the first messages that are those of
	// this call alone.
	Previous     string
	Instructions int
	// Settings is what is recorded of the request besides what it holds here, nil =
	// Fields.
	Settings map[string]json.RawMessage
	// Own is for the writer of the dialect.
	Own any
}

// Model is what the client calls the model.
func (c *Call) Model() string { return jsonscan.Unquote(c.Fields["model"]) }

// Meta is what a reply says of itself.
type Meta struct {
	ID      string // of the call, with no prefix
	Created time.Time
	Prompt  []rollout.TokenID // where it is known before the engine tells it
}

// Problem is a refusal or a failure, for a client.
type Problem struct {
	Status     int
	Type       string // of the engine's own words, "" = the dialect's for the status
	Message    string
	RetryAfter string // seconds
}

// Error is the message.
func (p *Problem) Error() string { return p.Message }

// Bad is a request that cannot be read.
func Bad(format string, args ...any) error {
	return &Problem{Status: http.StatusBadRequest, Message: rollout.Printable(fmt.Sprintf(format, args...))}
}

// Dialect is one API.
type Dialect interface {
	// Name is its name in the record.
	Name() string
	// Parse reads a request.
	Parse(body []byte) (*Call, error)
	// Writer writes one reply.
	Writer(c *Call, m Meta) Writer
	// Error is the body of a refusal.
	Error(p *Problem) []byte
}

// Writer writes one reply to one client, as a stream of events or as a whole.
type Writer interface {
	// Chunk appends the events of a chunk, which may be the last, already recorded.
	Chunk(dst []byte, c *engine.Chunk) []byte
	// End appends the events after the last chunk.
	End(dst []byte) []byte
	// Fail appends the event of a reply that breaks off.
	Fail(dst []byte, p *Problem) []byte
	// Ping appends what keeps a client waiting.
	Ping(dst []byte) []byte
	// Whole is a reply that is not streamed.
	Whole(chunks []*engine.Chunk) []byte
}

// Comment is a ping that every reader of events passes over.
const Comment = ": keep-alive\n\n"

// JSON writes a value, with <, > and & as they are. The values that dialects write have
// no errors.
func JSON(v any) []byte {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

// Kind is the class of a status in the words that OpenAI and Anthropic share.
func Kind(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable || status == 529:
		return "overloaded_error"
	case status < 500:
		return "invalid_request_error"
	}
	return "api_error"
}

// OpenAI is the body of an error as OpenAI's APIs have it.
func OpenAI(p *Problem) []byte {
	kind := p.Type
	if kind == "" {
		kind = Kind(p.Status)
	}
	return JSON(map[string]any{"error": map[string]any{"message": p.Message, "type": kind, "param": nil, "code": p.Status}})
}
