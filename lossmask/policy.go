package lossmask

import (
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Policy says which tokens train. The zero value trains exactly what the policy model sampled.
// Fields combine: a token must satisfy every one of them.
type Policy struct {
	// LastTurn takes only the sampled tokens of the last turn in the row.
	LastTurn bool
	// Assistant, when set, takes every token of reasoning, content or tool calls of the messages it
	// accepts, sampled or not, in addition to the sampled tokens: imitation of demonstrations
	// beside sampled turns. Package tokenize makes no row of a rollout without a sampled turn, so
	// mark demonstrations as sampled to train on them alone.
	Assistant func(message int) bool
	// Turns and Messages, when set, must accept the token's turn and message.
	Turns    func(turn int) bool
	Messages func(message int) bool
	// NoReasoning and NoToolCalls leave out those parts of completions.
	NoReasoning bool
	NoToolCalls bool
	// TrainSeparator also trains the scaffold between a trained stop token and the next added token
	// (the newline of ChatML). The model never sampled it, but some supervised recipes train it.
	TrainSeparator bool
	// TurnWeight returns the loss weight of a turn's tokens, a finite number >= 0; nil = 1. It is
	// called with turn −1 for tokens without a turn.
	TurnWeight func(turn int) float32
	// MaxTokens masks a whole row longer than this many tokens; 0 = no limit.
	MaxTokens int
	// MaskStatus masks whole rows of rollouts that ended with these statuses. nil = aborted and
	// failed rollouts; an empty slice masks none.
	MaskStatus []rollout.Status
}

// Validate returns all faults of p, joined.
func (p Policy) Validate() error {
	f := faults.List{Of: "lossmask.Policy."}
	if p.MaxTokens < 0 {
		f.Add("MaxTokens", "limit %d is negative", p.MaxTokens)
	}
	for _, st := range p.MaskStatus {
		if st > rollout.StatusFailed {
			f.Add("MaskStatus", "%d is no status", st)
		}
	}
	return f.Err()
}

// RowReason returns why p masks a whole row of n tokens of a rollout that ended with status st:
// "overlong", or the status; "" if p does not.
func (p Policy) RowReason(n int, st rollout.Status) string {
	if p.MaxTokens > 0 && n > p.MaxTokens {
		return "overlong"
	}
	masked := p.MaskStatus
	if masked == nil {
		masked = []rollout.Status{rollout.StatusAborted, rollout.StatusFailed}
	}
	for _, m := range masked {
		if m == st {
			return st.String()
		}
	}
	return ""
}
