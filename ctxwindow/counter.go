package ctxwindow

import (
	"context"
	"errors"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Counter returns the number of tokens of the model's input for these messages, generation prompt
// included. Budgets are as exact as the Counter: an encoder's own count makes them exact. Count
// must not keep the slice.
type Counter interface {
	Count(ctx context.Context, messages []rollout.Message) (int, error)
}

// CounterFunc is a function used as a Counter.
type CounterFunc func(ctx context.Context, messages []rollout.Message) (int, error)

// Count calls f.
func (f CounterFunc) Count(ctx context.Context, messages []rollout.Message) (int, error) {
	return f(ctx, messages)
}

// unit is a part of a context: positions [from, to) of the history, or msg in their place if msg is
// set.
type unit struct {
	from, to int
	msg      *rollout.Message
	note     bool // msg replaces omitted turns
	bare     bool // msg has no content left of the message it replaces
}

// count returns the exact count of a view.
func (h *History) count(ctx context.Context, view []unit) (int, error) {
	if h.counter == nil {
		return 0, zero.Value("ctxwindow.History", "Plan, Fit or Session")
	}
	return h.call(ctx, h.messages(view))
}

func (h *History) call(ctx context.Context, messages []rollout.Message) (int, error) {
	h.calls++
	return counted(h.counter.Count(ctx, messages))
}

// messages returns the messages that a view shows. A view of one range shares the history's memory.
func (h *History) messages(view []unit) []rollout.Message {
	if len(view) == 1 && view[0].msg == nil {
		return h.history[view[0].from:view[0].to]
	}
	h.scratch = h.scratch[:0]
	for _, u := range view {
		if u.msg != nil {
			h.scratch = append(h.scratch, *u.msg)
			continue
		}
		h.scratch = append(h.scratch, h.history[u.from:u.to]...)
	}
	return h.scratch
}

// cost returns about how many tokens a block adds after the first fixed messages; each block is
// counted once.
func (h *History) cost(ctx context.Context, fixed int, b block) (int, error) {
	if n, ok := h.costs[b]; ok {
		return n, nil
	}
	base, ok := h.fixedCounts[fixed]
	if !ok && fixed > 0 { // templates may reject an empty list
		n, err := h.call(ctx, h.history[:fixed])
		if err != nil {
			return 0, err
		}
		base, h.fixedCounts[fixed] = n, n
	}
	with, err := h.count(ctx, []unit{{from: 0, to: fixed}, {from: b.from, to: b.to}})
	if err != nil {
		return 0, err
	}
	h.costs[b] = max(0, with-base)
	return h.costs[b], nil
}

// counted returns what a counter returned, with errors and negative counts as a *rollout.Error.
func counted(n int, err error) (int, error) {
	if err != nil {
		return 0, failed(err, rollout.KindTokenizer, "the token counter")
	}
	if n < 0 {
		return 0, rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "the token counter gave %d tokens, expected 0 or more", n)
	}
	return n, nil
}

// failed gives an error of the caller's code a kind if it has none.
func failed(err error, kind rollout.Kind, what string) error {
	var e *rollout.Error
	if errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return rollout.Errorf(kind, rollout.Where{}, "%s failed: %w", what, err)
}
