package ctxwindow

import (
	"context"
	"errors"
	"math"

	"github.com/turnpack/turnpack/rollout"
)

// Policy decides what each call of the model sees. The policies of this package are
// plain values; any type with these methods is one as well, and works in Plan, Fit,
// Session and turnpack.Pipeline as they do.
type Policy interface {
	// Validate reports every fault at once, each of kind input.
	Validate() error
	// Start begins the calls of one rollout.
	Start(h *History) Strategy
}

// Strategy is a policy at work on one rollout. What it keeps between calls of View is
// what the policy remembers of its cuts.
type Strategy interface {
	// View says what a call sees that comes after the first n messages of the history. n
	// never shrinks, and may be the same again. After an error, View may be asked once
	// more, and must not have forgotten a cut.
	View(ctx context.Context, n int) (View, error)
}

// View is what one call sees of the history before it.
type View struct {
	// Parts are stretches [From, To) of History.Messages in order, or messages in their
	// place. nil shows the history as it is; parts that show nothing are refused.
	Parts     []rollout.ContextPart
	Tokens    int // of the context, 0 not counted
	Omitted   int // history turns left out
	Shortened int // messages shown shortened
	Emptied   int // of them, those of which nothing is left but the note
	// OverBudget and LostLatest say that the context exceeds the budget, or lacks the
	// latest history turn.
	OverBudget, LostLatest bool
}

// strategy is one of this package: units are the parts of the view, nil for the plain
// history.
type strategy func(ctx context.Context, n int) (units []unit, v View, err error)

// View implements Strategy.
func (s strategy) View(ctx context.Context, n int) (View, error) {
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

// Share defaults.
const (
	defaultHead   = 0.3 // share of the free budget for the first turns
	defaultTarget = 0.6 // share of the budget a cut leaves filled
)

// None shows each turn the whole history.
type None struct{}

// HeadTail is the window to choose when a window is all that is asked for: the
// fixed first messages, the first turns within the head share of what they leave
// free, a note, and the latest turns within the rest. Turns stay whole, tool
// results with the call they answer. The latest turn is always kept, its content
// shortened in the middle if it must be, and no context exceeds the budget.
//
// A window that moves at every step makes about one training row per step; see
// Refill.
type HeadTail struct {
	Budget int // tokens of the model's input, generation prompt included
	// Head is the share, 0…1, of the free budget that the first turns may take.
	// 0 means the default 0.3, negative none.
	Head float64
	// Fixed is the number of first messages always shown. 0 means all before the
	// first assistant message.
	Fixed int
	// Note makes what is said where turns were omitted. nil means one line that
	// names their number. A user message becomes the end of the user or tool
	// message before it, since many templates refuse two user turns in a row or take
	// the second for a new task; a message of another role stands by itself.
	Note func(omitted int) rollout.Message
}

// Tail is HeadTail without a head: the fixed first messages, a note, the latest
// turns.
type Tail struct {
	Budget int
	Fixed  int                               // as in HeadTail
	Note   func(omitted int) rollout.Message // as in HeadTail
}

// Refill lets the context grow until the budget is full, then cuts it to a
// share of the budget and lets it grow again. Between two cuts each context
// begins with the one before, so the turns of that stretch make one training
// row. The guarantees are those of HeadTail.
type Refill struct {
	Budget int
	// Target is the share of the budget, 0…1, that a cut leaves filled at most
	// (the latest turn aside). 0 means the default 0.6.
	Target float64
	Fixed  int                               // as in HeadTail
	Note   func(omitted int) rollout.Message // as in HeadTail
}

// Compaction is Refill with a summary of what was cut in place of the note. The
// summary is part of the turn's recorded context.
type Compaction struct {
	Budget int
	Target float64 // as in Refill
	Fixed  int     // as in HeadTail
	// Summarize writes one message that stands for omitted messages, shown as a
	// Note of HeadTail is. They begin with the summary before, if there was one. A
	// summary that does not fit is shortened.
	Summarize func(ctx context.Context, omitted []rollout.Message) (rollout.Message, error)
}

// Validate accepts every None.
func (None) Validate() error { return nil }

// Validate checks the budget, the share and the number of fixed messages.
func (p HeadTail) Validate() error {
	return errors.Join(checkBudget(p.Budget), checkShare("Head", p.Head), checkFixed(p.Fixed))
}

// Validate checks the budget and the number of fixed messages.
func (p Tail) Validate() error { return p.headTail().Validate() }

func (p Tail) headTail() HeadTail {
	return HeadTail{Budget: p.Budget, Head: -1, Fixed: p.Fixed, Note: p.Note}
}

// Validate checks the budget, the share and the number of fixed messages.
func (p Refill) Validate() error {
	return errors.Join(checkBudget(p.Budget), checkTarget(p.Target), checkFixed(p.Fixed))
}

// Validate checks the budget, the share, the number of fixed messages and that
// there is a summarizer.
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

func checkShare(field string, v float64) error {
	if math.IsNaN(v) || v > 1 {
		return fault(field, "is %v, want a share of at most 1", v)
	}
	return nil
}

func checkTarget(v float64) error {
	if math.IsNaN(v) || v < 0 || v > 1 {
		return fault("Target", "is %v, want a share of 0 (default) to 1", v)
	}
	return nil
}
