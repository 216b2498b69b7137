package ctxwindow

import (
	"context"

	"github.com/turnpack/turnpack/rollout"
)

// Fitted is what one call sees.
type Fitted struct {
	Context   rollout.Context   // nil Parts = the plain history
	Messages  []rollout.Message // what the context shows; must not be changed
	Tokens    int               // 0 under None, which does not count
	Omitted   int               // history turns left out
	Shortened int               // messages shown shortened
	Emptied   int               // shortened messages with no content left but the marker
}

// Fit applies a policy to one list of messages, for a caller about to call the model once. Policies
// that remember earlier cuts (Refill, Compaction) start anew with every Fit; use a Session for a
// rollout of many calls.
func Fit(ctx context.Context, messages []rollout.Message, policy Policy, counter Counter) (Fitted, error) {
	s, err := NewSession(policy, counter)
	if err != nil {
		return Fitted{}, err
	}
	s.history = newHistory(&rollout.Rollout{Messages: messages}, counter)
	return s.Fit(ctx)
}
