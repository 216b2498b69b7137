package ctxwindow

import (
	"context"

	"github.com/turnpack/turnpack/rollout"
)

// refill grows one view until it is full, then cuts it.
type refill struct {
	*planner
	budget, fixed int
	target        float64
	note          func(int) rollout.Message
	summarize     func(context.Context, []rollout.Message) (rollout.Message, error) // nil: note

	now     []unit // the view of the turn before; nil is the plain history
	upTo    int    // its history positions
	gone    int    // first history position behind what is omitted
	summary *rollout.Message
	state   step
}

func targetOr(v float64) float64 {
	if v == 0 {
		return DefaultTarget
	}
	return v
}

func (p Refill) start(pl *planner) strategy {
	return &refill{planner: pl, budget: p.Budget, fixed: p.Fixed, target: targetOr(p.Target), note: noteOr(p.Note)}
}

func (p Compaction) start(pl *planner) strategy {
	return &refill{planner: pl, budget: p.Budget, fixed: p.Fixed, target: targetOr(p.Target), note: omissionNote, summarize: p.Summarize}
}

func (s *refill) view(ctx context.Context, n int) ([]unit, step, error) {
	if n == 0 {
		return nil, step{}, nil
	}
	grown := []unit{{from: 0, to: n}}
	if s.now != nil {
		grown = extend(s.now, s.upTo, n)
	}
	total, err := s.meter.count(ctx, grown)
	if err != nil {
		return nil, step{}, err
	}
	s.upTo = n
	if total <= s.budget {
		s.state.tokens = total
		if s.now != nil {
			s.now = grown
		}
		return s.now, s.state, nil
	}
	if s.now, s.state, err = s.cut(ctx, n); err != nil {
		return nil, step{}, err
	}
	return s.now, s.state, nil
}

// extend appends history positions [from, to) to a view without changing it.
func extend(view []unit, from, to int) []unit {
	out := append(make([]unit, 0, len(view)+1), view...)
	if last := len(out) - 1; last >= 0 && out[last].msg == nil && out[last].to == from {
		out[last].to = to
		return out
	}
	return append(out, unit{from: from, to: to})
}

func (s *refill) cut(ctx context.Context, n int) ([]unit, step, error) {
	fixed, blocks := s.split(n, s.fixed)
	if len(blocks) == 0 {
		return s.squeeze(ctx, s.budget, fixed, nil, block{n, n})
	}
	note := s.note
	if s.summary != nil {
		note = func(int) rollout.Message { return *s.summary }
	}
	c := &cut{planner: s.planner, fixed: fixed, blocks: blocks, note: note}
	base, err := c.base(ctx)
	if err != nil {
		return nil, step{}, err
	}
	want := int(float64(s.budget) * s.target)
	tail, err := c.backTo(ctx, 0, want-base)
	if err != nil {
		return nil, step{}, err
	}
	if s.summarize == nil {
		return c.settle(ctx, 0, tail, want, s.budget)
	}
	return s.compact(ctx, c, tail)
}

// compact puts a summary in place of the blocks before tail.
func (s *refill) compact(ctx context.Context, c *cut, tail int) ([]unit, step, error) {
	last := len(c.blocks) - 1
	gone := max(s.gone, c.fixed)
	if c.blocks[tail].from <= gone {
		tail = last // the estimate leaves nothing new to omit, yet it is too much
	}
	start := max(c.blocks[tail].from, gone)
	if start > gone {
		var omitted []rollout.Message
		if s.summary != nil {
			omitted = append(omitted, *s.summary)
		}
		msg, err := s.summarize(ctx, append(omitted, s.history[gone:start]...))
		if err != nil {
			return nil, step{}, failed(err, rollout.KindInput, "the summarizer")
		}
		s.summary, s.gone = &msg, start
	}
	var view, middle []unit
	if c.fixed > 0 {
		view = append(view, unit{from: 0, to: c.fixed})
	}
	if s.summary != nil {
		middle = []unit{{from: c.fixed, to: s.gone, msg: s.summary, note: true}}
	}
	kept := block{start, c.blocks[last].to}
	view = s.join(append(append(view, middle...), unit{from: kept.from, to: kept.to}))
	n, err := s.meter.count(ctx, view)
	if err != nil || n <= s.budget {
		return view, step{tokens: n, omitted: tail}, err
	}
	view, st, err := s.squeeze(ctx, s.budget, c.fixed, middle, kept)
	st.omitted = tail
	return view, st, err
}
