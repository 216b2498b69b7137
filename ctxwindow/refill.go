package ctxwindow

import (
	"cmp"
	"context"

	"github.com/turnpack/turnpack/rollout"
)

// refill grows a view until the budget is full, then cuts it.
type refill struct {
	*History
	budget, fixed int
	target        float64
	note          func(int) rollout.Message
	summarize     func(context.Context, []rollout.Message) (rollout.Message, error) // nil = use note

	now     []unit // the view of the turn before; nil = the plain history
	upTo    int    // number of history positions that now covers
	gone    int    // first history position after the summarized ones
	summary *rollout.Message
	draft   *rollout.Message // summary of the cut in progress, adopted once the cut succeeds
	drafted int              // what gone is then
	state   View
}

// Start returns a strategy that remembers its cuts.
func (p Refill) Start(h *History) Strategy { return strategy(p.begin(h).view) }

func (p Refill) begin(h *History) *refill {
	return &refill{History: h, budget: p.Budget, fixed: p.Fixed, target: cmp.Or(p.Target, defaultTarget), note: noteOr(p.Note)}
}

// Start returns a strategy that remembers its cuts and summaries.
func (p Compaction) Start(h *History) Strategy {
	s := p.refill().begin(h)
	s.summarize = p.Summarize
	return strategy(s.view)
}

func (s *refill) view(ctx context.Context, n int) ([]unit, View, error) {
	grown := []unit{{from: 0, to: n}}
	if s.now != nil {
		grown = extend(s.now, s.upTo, n)
	}
	total, err := s.count(ctx, grown)
	if err != nil {
		return nil, View{}, err
	}
	if total <= s.budget {
		s.upTo, s.state.Tokens = n, total
		if s.now != nil {
			s.now = grown
		}
		return s.now, s.state, nil
	}
	now, state, err := s.cut(ctx, n)
	if err != nil { // keep the previous cut
		return nil, View{}, err
	}
	if s.draft != nil {
		s.summary, s.gone, s.draft = s.draft, s.drafted, nil
	}
	s.now, s.upTo, s.state = now, n, state
	return s.now, s.state, nil
}

// extend returns view with history positions [from, to) appended; view is not changed.
func extend(view []unit, from, to int) []unit {
	out := append(make([]unit, 0, len(view)+1), view...)
	if from == to {
		return out
	}
	if last := len(out) - 1; last >= 0 && out[last].msg == nil && out[last].to == from {
		out[last].to = to
		return out
	}
	return append(out, unit{from: from, to: to})
}

func (s *refill) cut(ctx context.Context, n int) ([]unit, View, error) {
	fixed, blocks := s.split(n, s.fixed)
	if len(blocks) == 0 {
		return s.squeeze(ctx, s.budget, fixed, nil, block{n, n})
	}
	note := s.note
	if s.summary != nil {
		note = func(int) rollout.Message { return *s.summary }
	}
	c := &cut{History: s.History, fixed: fixed, blocks: blocks, note: note}
	base, err := c.base(ctx)
	if err != nil {
		return nil, View{}, err
	}
	want := int(float64(s.budget) * s.target)
	tail, err := c.backTo(ctx, 0, want-base)
	if err != nil {
		return nil, View{}, err
	}
	if s.summarize == nil {
		return c.trim(ctx, 0, tail, want, s.budget)
	}
	return s.compact(ctx, c, tail)
}

// compact replaces the blocks before tail by a summary.
func (s *refill) compact(ctx context.Context, c *cut, tail int) ([]unit, View, error) {
	last := len(c.blocks) - 1
	gone := max(s.gone, c.fixed)
	if c.blocks[tail].from <= gone {
		tail = last // nothing new to omit by the estimate, yet the view is too long
	}
	start := max(c.blocks[tail].from, gone)
	summary, upTo := s.summary, s.gone
	if start > gone {
		if err := s.summarized(ctx, gone, start); err != nil {
			return nil, View{}, err
		}
		summary, upTo = s.draft, start
	} else {
		s.draft = nil
	}
	var view, middle []unit
	if c.fixed > 0 {
		view = append(view, unit{from: 0, to: c.fixed})
	}
	if summary != nil {
		middle = []unit{{from: c.fixed, to: upTo, msg: summary, note: true}}
	}
	kept := block{start, c.blocks[last].to}
	view = s.join(append(append(view, middle...), unit{from: kept.from, to: kept.to}))
	n, err := s.count(ctx, view)
	if err != nil || n <= s.budget {
		return view, View{Tokens: n, Omitted: tail}, err
	}
	view, st, err := s.squeeze(ctx, s.budget, c.fixed, middle, kept)
	st.Omitted = tail
	return view, st, err
}

// summarized drafts a summary of the previous summary and the messages [from, to).
func (s *refill) summarized(ctx context.Context, from, to int) error {
	var omitted []rollout.Message
	if s.summary != nil {
		omitted = append(omitted, *s.summary)
	}
	msg, err := s.summarize(ctx, append(omitted, s.history[from:to]...))
	if err != nil {
		return failed(err, rollout.KindInput, "the summarizer")
	}
	s.draft, s.drafted = &msg, to
	return nil
}
