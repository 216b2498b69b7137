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
	ID       prm.VoteID // of the first vote asked for
	Votes    int        // asked for in this request
	Try      int        // 0-based over the tries for these votes
}

// Outcome is how an attempt ended.
type Outcome struct {
	Status                         int // HTTP status, 0 without a response
	Votes                          int // received
	PromptTokens, CompletionTokens int
	Duration                       time.Duration
	Err                            error // nil on success
}

// Hook watches attempts, for tracing. Start is called before a request, and the
// function it returns after it; the context travels with the request. Both are
// called from many goroutines. An OpenTelemetry hook starts a span named after
// the model in Start, with the attributes gen_ai.request.model and
// server.address, and ends it with the outcome.
type Hook interface {
	Start(ctx context.Context, a Attempt) (context.Context, func(Outcome))
}
