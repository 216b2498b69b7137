package openai

import (
	"context"
	"time"

	"github.com/turnpack/turnpack/prm"
)

// Attempt is one request to one endpoint.
type Attempt struct {
	Endpoint string
	Model    string
	ID       prm.VoteID // id of the first requested vote
	Votes    int        // votes requested
	Try      int        // 0-based number of the try for these votes
}

// Outcome is the result of an attempt.
type Outcome struct {
	Status                         int // HTTP status, 0 without a response
	Votes                          int // votes received
	PromptTokens, CompletionTokens int
	Duration                       time.Duration
	Err                            error // nil on success
}

// Hook observes attempts, for tracing. Start is called before a request and the function it returns
// after the request; the request uses the returned context. Both are called from several goroutines.
// An OpenTelemetry hook starts a span named after the model in Start, with the attributes
// gen_ai.request.model and server.address, and ends it with the outcome.
type Hook interface {
	Start(ctx context.Context, a Attempt) (context.Context, func(Outcome))
}
