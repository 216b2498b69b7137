package ctxwindow

import (
	"cmp"
	"context"

	"github.com/turnpack/turnpack/rollout"
)

// Start returns a strategy that shows every call the whole history.
func (None) Start(*History) Strategy {
	return strategy(func(context.Context, int) ([]unit, View, error) { return nil, View{}, nil })
}

// headTail plans each turn from the whole history.
type headTail struct {
	*History
	budget, fixed int
	head          float64
	note          func(int) rollout.Message
	bases         map[int]int // count of the fixed messages and a note, by the number in the note
}

// Start returns a strategy that plans each call from the whole history.
func (p HeadTail) Start(h *History) Strategy {
	s := &headTail{History: h, budget: p.Budget, fixed: p.Fixed, head: max(0, cmp.Or(p.Head, defaultHead)), note: noteOr(p.Note), bases: map[int]int{}}
	return strategy(s.view)
}

// Start returns a strategy that plans each call from the whole history.
func (p Tail) Start(h *History) Strategy { return p.headTail().Start(h) }

func (s *headTail) view(ctx context.Context, n int) ([]unit, View, error) {
	// A history that did not fit may fit later: templates drop old reasoning.
	total, err := s.count(ctx, []unit{{from: 0, to: n}})
	if err != nil || total <= s.budget {
		return nil, View{Tokens: total}, err
	}
	fixed, blocks := s.split(n, s.fixed)
	if len(blocks) == 0 {
		return s.squeeze(ctx, s.budget, fixed, nil, block{n, n})
	}
	c := &cut{History: s.History, fixed: fixed, blocks: blocks, note: s.note}
	base, err := s.base(ctx, *c)
	if err != nil {
		return nil, View{}, err
	}
	// The latest turn is reserved first: it is shown whatever the shares.
	latest, err := c.cost(ctx, len(blocks)-1)
	if err != nil {
		return nil, View{}, err
	}
	free := s.budget - base
	share := int(float64(free) * s.head)
	head, err := c.upTo(ctx, min(share, free-latest))
	if err != nil {
		return nil, View{}, err
	}
	tail, err := c.backTo(ctx, head, free-share)
	if err != nil {
		return nil, View{}, err
	}
	return c.trim(ctx, head, tail, s.budget, s.budget)
}

// base returns the count of the fixed messages and a note. The note names a number of as many
// digits as the actual one, so that one count serves nearly all turns; trim checks the chosen turns
// by an exact count.
func (s *headTail) base(ctx context.Context, c cut) (int, error) {
	n := likeNumber(len(c.blocks))
	if base, ok := s.bases[n]; ok {
		return base, nil
	}
	c.note = func(int) rollout.Message { return s.note(n) }
	base, err := c.base(ctx)
	if err == nil {
		s.bases[n] = base
	}
	return base, err
}

// likeNumber returns the smallest number with as many digits as n and the same grammatical number.
func likeNumber(n int) int {
	ten := 1
	for n >= 10*ten {
		ten *= 10
	}
	return max(ten, min(n, 2))
}

// cut holds the candidates for a cut: the fixed messages and the blocks after them.
type cut struct {
	*History
	fixed  int
	blocks []block
	note   func(omitted int) rollout.Message
}

// base returns the count of the fixed messages and a note for all blocks.
func (c *cut) base(ctx context.Context) (int, error) {
	return c.count(ctx, c.join(c.compose(0, len(c.blocks))))
}

// cost returns the tokens that block k adds after the fixed messages.
func (c *cut) cost(ctx context.Context, k int) (int, error) {
	return c.History.cost(ctx, c.fixed, c.blocks[k])
}

// upTo returns how many of the first blocks, the latest excluded, fit into free.
func (c *cut) upTo(ctx context.Context, free int) (int, error) {
	for k := range len(c.blocks) - 1 {
		n, err := c.cost(ctx, k)
		if err != nil {
			return 0, err
		}
		if free -= n; free < 0 {
			return k, nil
		}
	}
	return len(c.blocks) - 1, nil
}

// backTo returns the first block of the longest tail that fits into free, without the first head
// blocks. The tail always has the latest block.
func (c *cut) backTo(ctx context.Context, head, free int) (int, error) {
	last := len(c.blocks) - 1
	for k := last; k >= head; k-- {
		n, err := c.cost(ctx, k)
		if err != nil {
			return 0, err
		}
		if free -= n; free < 0 {
			return min(k+1, last), nil
		}
	}
	return head, nil
}

// compose returns the fixed messages, blocks [0, head), a note for blocks [head, tail), and the
// other blocks.
func (c *cut) compose(head, tail int) []unit {
	start := c.fixed
	if head > 0 {
		start = c.blocks[head-1].to
	}
	view := make([]unit, 0, 3)
	if start > 0 {
		view = append(view, unit{from: 0, to: start})
	}
	if tail > head {
		msg := c.note(tail - head)
		view = append(view, unit{from: start, to: c.blocks[tail-1].to, msg: &msg, note: true})
	}
	if tail < len(c.blocks) {
		view = append(view, unit{from: c.blocks[tail].from, to: c.blocks[len(c.blocks)-1].to})
	}
	return view
}

// trim counts the chosen view exactly and drops blocks, the tail's oldest first, until it fits
// want. The latest block alone may take up to budget, and is shortened if it exceeds that.
func (c *cut) trim(ctx context.Context, head, tail, want, budget int) ([]unit, View, error) {
	last := len(c.blocks) - 1
	for {
		parts := c.compose(head, tail)
		view := c.join(parts)
		n, err := c.count(ctx, view)
		if err != nil {
			return nil, View{}, err
		}
		alone := head == 0 && tail == last
		if n <= want || alone && n <= budget {
			return view, View{Tokens: n, Omitted: tail - head}, nil
		}
		if alone {
			var middle []unit
			for _, u := range parts {
				if u.note {
					middle = append(middle, u)
				}
			}
			view, st, err := c.squeeze(ctx, budget, c.fixed, middle, c.blocks[last])
			st.Omitted = tail - head
			return view, st, err
		}
		for over := n - want; over > 0 && !(head == 0 && tail == last); {
			dropped := tail
			if tail < last {
				tail++
			} else {
				head--
				dropped = head
			}
			cost, err := c.cost(ctx, dropped)
			if err != nil {
				return nil, View{}, err
			}
			over -= max(1, cost)
		}
	}
}
