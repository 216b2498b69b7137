// Package wire holds what the dialects of clients share: a call independent of the dialect, the parsing of
// requests (read.go), and replies assembled from chunks (reply.go).
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

// Call is a client's request, independent of the dialect.
type Call struct {
	engine.Request
	// Previous is the id of the reply that the conversation continues, "" = the request contains all of it.
	// Instructions counts the leading messages that belong to this call alone.
	Previous     string
	Instructions int
	// Settings is what is recorded of the request besides the fields of Call, nil = Fields.
	Settings map[string]json.RawMessage
	// Own is private to the writer of the dialect.
	Own any
}

// Model returns the client's name of the model.
func (c *Call) Model() string { return jsonscan.Unquote(c.Fields["model"]) }

// Meta describes a reply.
type Meta struct {
	ID      string // of the call, without a prefix
	Created time.Time
	Prompt  []rollout.TokenID // if known before the engine returns it
}

// Problem is a refusal or a failure to report to a client.
type Problem struct {
	Status     int
	Type       string // from the engine, "" = the dialect's type for the status
	Message    string
	RetryAfter string // seconds
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// Bad returns the error for an invalid request.
func Bad(format string, args ...any) error {
	return &Problem{Status: http.StatusBadRequest, Message: rollout.Printable(fmt.Sprintf(format, args...))}
}

// Dialect is one API.
type Dialect interface {
	// Name returns the dialect's name in the record.
	Name() string
	// Parse parses a request.
	Parse(body []byte) (*Call, error)
	// Writer returns a writer for one reply.
	Writer(c *Call, m Meta) Writer
	// Error returns the body of a refusal.
	Error(p *Problem) []byte
}

// Writer writes one reply to one client, as a stream of events or as a whole.
type Writer interface {
	// Chunk appends the events of a chunk. It is called for the last chunk after the reply is recorded.
	Chunk(dst []byte, c *engine.Chunk) []byte
	// End appends the events after the last chunk.
	End(dst []byte) []byte
	// Fail appends the event for a reply that breaks off.
	Fail(dst []byte, p *Problem) []byte
	// Ping appends an event that keeps a waiting client connected.
	Ping(dst []byte) []byte
	// Whole returns an unstreamed reply.
	Whole(chunks []*engine.Chunk) []byte
}

// Comment is a ping that every reader of events skips.
const Comment = ": keep-alive\n\n"

// JSON encodes a value without escaping <, > and &. The values of the dialects always encode.
func JSON(v any) []byte {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

// Kind returns the error type for a status, where OpenAI and Anthropic use the same names.
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

// OpenAI returns the body of an error in the format of OpenAI's APIs.
func OpenAI(p *Problem) []byte {
	kind := p.Type
	if kind == "" {
		kind = Kind(p.Status)
	}
	return JSON(map[string]any{"error": map[string]any{"message": p.Message, "type": kind, "param": nil, "code": p.Status}})
}
