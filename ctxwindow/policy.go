package ctxwindow

import (
	"context"
	"errors"
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// Policy decides what each call of the model sees. The policies of this package are plain values;
// any other type with these methods works in Plan, Fit, Session and turnpack.Pipeline alike.
type Policy interface {
	// Validate returns every fault, joined, each of kind input.
	Validate() error
	// Start returns the strategy for the calls of one rollout.
	Start(h *History) Strategy
}

// Strategy is a policy applied to one rollout. It may keep state between calls of View, such as
// earlier cuts.
type Strategy interface {
	// View returns what a call made after the first n messages of the history sees. n never shrinks
	// but may repeat. After an error View may be called again and must still know its earlier cuts.
	View(ctx context.Context, n int) (View, error)
}

// View is what one call sees of the history before it.
type View struct {
	// Parts are ranges [From, To) of History.Messages in order, or messages in their place. nil
	// shows the plain history; an empty list is an error.
	Parts     []rollout.ContextPart
	Tokens    int // of the context; 0 if not counted
	Omitted   int // history turns left out
	Shortened int // messages shown shortened
	Emptied   int // shortened messages with no content left but the marker
	// OverBudget and LostLatest say that the context exceeds the budget, or lacks the latest
	// history turn.
	OverBudget, LostLatest bool
}

// strategy implements Strategy by a function that returns the view as units, nil for the plain
// history. It is not asked about an empty one, which templates may reject.
type strategy func(ctx context.Context, n int) (units []unit, v View, err error)

// View implements Strategy.
func (s strategy) View(ctx context.Context, n int) (View, error) {
	if n == 0 {
		return View{}, nil
	}
	units, v, err := s(ctx, n)
	if err != nil || units == nil {
		return v, err
	}
	v.Parts = make([]rollout.ContextPart, len(units))
	for i, u := range units {
		v.Parts[i] = rollout.ContextPart{From: u.from, To: u.to, Message: u.msg}
	}
	return v, nil
}

// Defaults of the shares.
const (
	defaultHead   = 0.3 // share of the free budget for the first turns
	defaultTarget = 0.6 // share of the budget that a cut leaves filled
)

// None shows every turn the whole history.
type None struct{}

// HeadTail is the window to choose by default: the fixed first messages, the first turns within the
// head share of the remaining budget, a note, and the latest turns within the rest. Turns stay
// whole: tool results stay with the call they answer. The latest turn is always kept, its content
// shortened in the middle if necessary, and no context exceeds the budget.
//
// A window that moves at every step makes about one training row per step; see Refill.
type HeadTail struct {
	Budget int // limit on the model's input, generation prompt included
	// Head is the share, 0…1, of the budget left by the fixed messages that the first turns may
	// take. 0 means the default 0.3, negative means no first turns.
	Head float64
	// Fixed is the number of first messages that are always shown. 0 means all before the first
	// assistant message.
	Fixed int
	// Note returns the message shown in place of omitted turns, given their number. nil means one
	// line that names the number. A user message is appended to the user or tool message before it,
	// since many templates reject two user turns in a row or read the second as a new task; a
	// message of another role stands by itself.
	Note func(omitted int) rollout.Message
}

// Tail is HeadTail without first turns: the fixed first messages, a note, the latest turns.
type Tail struct {
	Budget int
	Fixed  int                               // as in HeadTail
	Note   func(omitted int) rollout.Message // as in HeadTail
}

// Refill lets the context grow until the budget is full, then cuts it to a share of the budget and
// lets it grow again. Between two cuts each context begins with the one before, so the turns
// between them make one training row. The guarantees are those of HeadTail.
type Refill struct {
	Budget int
	// Target is the largest share of the budget, 0…1, that a cut leaves filled (unless the latest
	// turn alone is larger). 0 means the default 0.6.
	Target float64
	Fixed  int                               // as in HeadTail
	Note   func(omitted int) rollout.Message // as in HeadTail
}

// Compaction is Refill with a summary of the omitted messages in place of the note. The summary is
// part of the turn's recorded context.
type Compaction struct {
	Budget int
	Target float64 // as in Refill
	Fixed  int     // as in HeadTail
	// Summarize returns one message that replaces the omitted messages, shown as HeadTail's Note
	// is. omitted begins with the previous summary, if there was one. A summary that does not fit
	// is shortened.
	Summarize func(ctx context.Context, omitted []rollout.Message) (rollout.Message, error)
}

// Validate returns nil.
func (None) Validate() error { return nil }

// Validate checks the budget, the share and the number of fixed messages.
func (p HeadTail) Validate() error {
	return errors.Join(checkBudget(p.Budget), checkShare("Head", p.Head, math.Inf(-1), "at most 1"), checkFixed(p.Fixed))
}

// Validate checks the budget and the number of fixed messages.
func (p Tail) Validate() error { return p.headTail().Validate() }

func (p Tail) headTail() HeadTail {
	return HeadTail{Budget: p.Budget, Head: -1, Fixed: p.Fixed, Note: p.Note}
}

// Validate checks the budget, the share and the number of fixed messages.
func (p Refill) Validate() error {
	return errors.Join(checkBudget(p.Budget), checkShare("Target", p.Target, 0, "0 (default) to 1"), checkFixed(p.Fixed))
}

// Validate checks the budget, the share, the number of fixed messages and that Summarize is set.
func (p Compaction) Validate() error {
	err := p.refill().Validate()
	if p.Summarize == nil {
		err = errors.Join(err, fault("Summarize", "is nil, want a function that writes summaries"))
	}
	return err
}

func (p Compaction) refill() Refill {
	return Refill{Budget: p.Budget, Target: p.Target, Fixed: p.Fixed}
}

func fault(field, format string, args ...any) *rollout.Error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, format, args...)
}

func checkBudget(n int) error {
	if n <= 0 {
		return fault("Budget", "is %d tokens, want at least 1", n).WithFix("use None for no limit")
	}
	return nil
}

func checkFixed(n int) error {
	if n < 0 {
		return fault("Fixed", "is %d messages, want 0 (all before the first assistant message) or more", n)
	}
	return nil
}

// checkShare rejects a share below least or above 1; want says what is allowed.
func checkShare(field string, v, least float64, want string) error {
	if !(v >= least && v <= 1) {
		return fault(field, "is %v, want a share of %s", v, want)
	}
	return nil
}
