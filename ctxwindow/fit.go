package ctxwindow

import (
	"context"

	"github.com/turnpack/turnpack/rollout"
)

// Fitted is what one call sees.
type Fitted struct {
	Context   rollout.Context   // nil Parts: the messages as they are
	Messages  []rollout.Message // the context written out; it must not be changed
	Tokens    int               // 0 under None, which does not count
	Omitted   int               // history turns left out
	Shortened int               // messages shown shortened
	Emptied   int               // of them, those of which nothing is left but the note
}

// Fit applies a policy to one list of messages, for a caller that is about to
// call the model once. Policies that remember earlier cuts (Refill, Compaction) start
// afresh with every Fit: a rollout of many calls takes a Session.
func Fit(ctx context.Context, messages []rollout.Message, policy Policy, counter Counter) (Fitted, error) {
	s, err := NewSession(policy, counter)
	if err != nil {
		return Fitted{}, err
	}
	s.history = newHistory(&rollout.Rollout{Messages: messages}, counter)
	return s.Fit(ctx)
}
