package ctxwindow

import (
	"context"
	"errors"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Counter says how many tokens the model's input takes when it is shown these
// messages, generation prompt included. Budgets are as exact as the Counter: an
// encoder's own count makes them exact. It must not keep the slice.
type Counter interface {
	Count(ctx context.Context, messages []rollout.Message) (int, error)
}

// CounterFunc makes a function a Counter.
type CounterFunc func(ctx context.Context, messages []rollout.Message) (int, error)

// Count calls f.
func (f CounterFunc) Count(ctx context.Context, messages []rollout.Message) (int, error) {
	return f(ctx, messages)
}

// unit is a part of a context: positions [from, to) of the history or, with msg
// set, a message in their place.
type unit struct {
	from, to int
	msg      *rollout.Message
	note     bool // msg stands for omitted turns
	bare     bool // nothing is left of the message that msg stands for
}

// count is the exact count of a view.
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

// messages writes a view out. A view of one range is a view of the history.
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

// cost is about what a block adds after the first fixed messages, asked once for each.
func (h *History) cost(ctx context.Context, fixed int, b block) (int, error) {
	if n, ok := h.costs[b]; ok {
		return n, nil
	}
	base, ok := h.fixedCounts[fixed]
	if !ok && fixed > 0 { // templates may refuse to render nothing
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

// counted is what a counter said, or why that is no count.
func counted(n int, err error) (int, error) {
	if err != nil {
		return 0, failed(err, rollout.KindTokenizer, "the token counter")
	}
	if n < 0 {
		return 0, rollout.Errorf(rollout.KindTokenizer, rollout.Where{}, "the token counter gave %d tokens, expected 0 or more", n)
	}
	return n, nil
}

// failed gives the failure of what the caller brought a kind where it has none.
func failed(err error, kind rollout.Kind, what string) error {
	var e *rollout.Error
	if errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return rollout.Errorf(kind, rollout.Where{}, "%s failed: %w", what, err)
}
