package ctxwindow

import (
	"context"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Fitted is what one call sees.
type Fitted struct {
	Context   rollout.Context   // nil Parts: the messages as they are
	Messages  []rollout.Message // the context written out
	Tokens    int               // 0 under None, which does not count
	Omitted   int               // history turns left out
	Shortened int               // messages shown shortened
}

// Fit applies a policy to one list of messages, for a caller that is about to
// call the model. Policies that remember earlier cuts (Refill, Compaction) start
// afresh; use Plan for a whole rollout.
func Fit(ctx context.Context, messages []rollout.Message, policy Policy, counter Counter) (Fitted, error) {
	if policy == nil || counter == nil {
		return Fitted{}, fault("", "Fit needs a policy and a counter").WithFix("use None{} for no window")
	}
	if err := policy.Validate(); err != nil {
		return Fitted{}, err
	}
	p, err := newPlanner(ctx, &rollout.Rollout{Messages: messages}, counter)
	if err != nil {
		return Fitted{}, err
	}
	n := len(p.history)
	view, st, err := policy.start(p).view(ctx, n)
	if err != nil {
		return Fitted{}, err
	}
	f := Fitted{Context: p.context(view), Tokens: st.tokens, Omitted: st.omitted, Shortened: st.shortened}
	if view == nil {
		f.Messages = slices.Clone(p.history)
	} else {
		f.Messages = slices.Clone(p.meter.messages(view))
	}
	return f, nil
}
