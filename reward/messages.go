package reward

import "github.com/turnpack/turnpack/rollout"

// MessageFlags holds the faults of one sampled assistant message, as found by package detect.
type MessageFlags struct {
	InvalidToolCall   bool
	MalformedThinking bool
}

// MessageAdvantage returns the advantage of a message's tokens: the rollout's advantage, or the
// override for the message's flags, clipped in either case.
func (e Estimator) MessageAdvantage(advantage float64, m MessageFlags) float64 {
	switch {
	case m.InvalidToolCall && e.Override.InvalidToolCall != nil:
		advantage = *e.Override.InvalidToolCall
	case m.MalformedThinking && e.Override.MalformedThinking != nil:
		advantage = *e.Override.MalformedThinking
	}
	return e.Clip.clip(advantage)
}

// MessageEstimator determines the advantage of each sampled message. Estimator implements it.
type MessageEstimator interface {
	MessageAdvantage(advantage float64, m MessageFlags) float64
}

// CreditMessages returns seq with its Credit column set as Credit does, with the overrides of e:
// trained tokens of a flagged message get the override, all others the advantage. flags is keyed by
// message index in the rollout.
func CreditMessages(seq rollout.Sequence, advantage float64, flags map[int]MessageFlags, e MessageEstimator) (rollout.Sequence, error) {
	if err := aligned(&seq, "Source", len(seq.Source)); err != nil {
		return seq, err
	}
	return credit(seq, func(token int) float64 {
		return e.MessageAdvantage(advantage, flags[int(seq.Source[token])])
	})
}
