package ctxwindow

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnpack/turnpack/rollout"
)

// SWERLPolicy reproduces the context manager of OpenClaw-RL's swe-rl at commit 0d034dd, faults
// included, for runs that must be repeated exactly. [SWERL] returns one.
//
// It differs from HeadTail in these faults: turn costs are measured out of context, a context can
// exceed the budget or lose the latest turn, and content is never shortened. Report.OverBudget and
// Report.LostLatest count how often.
type SWERLPolicy struct {
	Budget int
	Head   float64 // share of the free budget for the first turns, 0…1; no default
	// Note returns the omission note; nil means the reference's own text.
	Note func(omitted int) rollout.Message
}

// SWERL returns the parity policy for swe-rl at commit 0d034dd with its head share of 0.3.
func SWERL(budget int) SWERLPolicy { return SWERLPolicy{Budget: budget, Head: 0.3} }

// Validate checks the budget and the share.
func (p SWERLPolicy) Validate() error {
	return errors.Join(checkBudget(p.Budget), checkShare("Head", p.Head, 0, "0 to 1"))
}

// referenceFixed is how many first messages the reference always keeps.
const referenceFixed = 2

func referenceNote(omitted int) rollout.Message {
	return rollout.Message{Role: rollout.RoleUser,
		Content: fmt.Sprintf("[... %d turn(s) of interaction history omitted due to context window limit ...]", omitted)}
}

// Decision holds what the reference computes for one list of messages.
type Decision struct {
	Total       int   // count of all messages
	Fixed       int   // count of the first two messages and a note
	TurnLengths []int // messages per turn
	TurnCosts   []int // cost of each turn, measured after two one-letter messages
	Kept        []int // message indices in order; -1 is the note
	Unchanged   bool
	Omitted     int // number of turns in the note; 0 if Unchanged
	After       int // count of the kept messages
}

// Decide runs the reference on one list of messages and returns every intermediate value.
func (p SWERLPolicy) Decide(ctx context.Context, messages []rollout.Message, counter Counter) (Decision, error) {
	if err := p.Validate(); err != nil {
		return Decision{}, err
	}
	if counter == nil {
		return Decision{}, fault("counter", "Decide needs a counter")
	}
	h := newHistory(&rollout.Rollout{Messages: messages}, counter)
	s := p.begin(h)
	d := Decision{TurnLengths: []int{}, TurnCosts: []int{}, Kept: []int{}}
	turns := s.turns(len(h.history))
	for _, b := range turns {
		n, err := s.cost(ctx, b)
		if err != nil {
			return Decision{}, err
		}
		d.TurnLengths = append(d.TurnLengths, b.to-b.from)
		d.TurnCosts = append(d.TurnCosts, n)
	}
	var err error
	if d.Fixed, err = s.fixedCost(ctx, len(h.history)); err != nil {
		return Decision{}, err
	}
	view, st, err := s.view(ctx, len(h.history))
	if err != nil {
		return Decision{}, err
	}
	d.Total, d.Unchanged, d.Omitted, d.After = s.total, view == nil, st.Omitted, st.Tokens
	if view == nil {
		view = []unit{{from: 0, to: len(h.history)}}
	}
	for _, u := range view {
		if u.msg != nil {
			d.Kept = append(d.Kept, -1)
			continue
		}
		for k := u.from; k < u.to; k++ {
			d.Kept = append(d.Kept, h.index[k])
		}
	}
	return d, nil
}

type reference struct {
	*History
	budget int
	head   float64
	note   func(int) rollout.Message

	total     int     // of the last view
	list      []block // turns of the longest history so far
	costs     map[block]int
	empty     int // count of the two one-letter messages
	emptyDone bool
}

// Start returns a strategy that plans each call as the reference does.
func (p SWERLPolicy) Start(h *History) Strategy { return strategy(p.begin(h).view) }

func (p SWERLPolicy) begin(h *History) *reference {
	note := p.Note
	if note == nil {
		note = referenceNote
	}
	return &reference{History: h, budget: p.Budget, head: p.Head, note: note, costs: make(map[block]int)}
}

// turns cuts the messages after the first two into turns: an assistant message directly followed by
// a user message, or any other message by itself. n does not shrink between calls, so only the last
// turn can still change.
func (s *reference) turns(n int) []block {
	k := min(referenceFixed, n)
	if last := len(s.list) - 1; last >= 0 {
		k = s.list[last].from
		s.list = s.list[:last]
	}
	for k < n {
		end := k + 1
		if s.history[k].Role == rollout.RoleAssistant && end < n && s.history[end].Role == rollout.RoleUser {
			end++
		}
		s.list = append(s.list, block{k, end})
		k = end
	}
	return s.list
}

// placeholders returns the messages placed before a turn to measure its cost.
func placeholders() []rollout.Message {
	return []rollout.Message{{Role: rollout.RoleSystem, Content: "S"}, {Role: rollout.RoleUser, Content: "U"}}
}

func (s *reference) cost(ctx context.Context, b block) (int, error) {
	if n, ok := s.costs[b]; ok {
		return n, nil
	}
	if !s.emptyDone {
		n, err := s.call(ctx, placeholders())
		if err != nil {
			return 0, err
		}
		s.empty, s.emptyDone = n, true
	}
	with, err := s.call(ctx, append(placeholders(), s.history[b.from:b.to]...))
	if err != nil {
		return 0, err
	}
	s.costs[b] = max(0, with-s.empty)
	return s.costs[b], nil
}

// fixedCost counts the first two messages and a note for no turns.
func (s *reference) fixedCost(ctx context.Context, n int) (int, error) {
	return s.count(ctx, s.compose(n, nil, 0, 0, 0))
}

// compose returns the first two messages, the first head turns, a note for omitted turns, and the
// turns from tail on.
func (s *reference) compose(n int, turns []block, head, tail, omitted int) []unit {
	start := min(referenceFixed, n)
	end := start
	if head > 0 {
		start = turns[head-1].to
	}
	if tail > 0 {
		end = turns[tail-1].to
	}
	var view []unit
	if start > 0 {
		view = append(view, unit{from: 0, to: start})
	}
	note := s.note(omitted)
	view = append(view, unit{from: start, to: max(start, end), msg: &note})
	if tail < len(turns) {
		view = append(view, unit{from: turns[tail].from, to: n})
	}
	return view
}

func (s *reference) view(ctx context.Context, n int) ([]unit, View, error) {
	total, err := s.count(ctx, []unit{{from: 0, to: n}})
	if err != nil {
		return nil, View{}, err
	}
	s.total = total
	whole := View{Tokens: total, OverBudget: total > s.budget}
	turns := s.turns(n)
	if total <= s.budget || len(turns) <= 1 {
		return nil, whole, nil
	}
	fixed, err := s.fixedCost(ctx, n)
	if err != nil {
		return nil, View{}, err
	}
	head, tail := 0, len(turns)
	if free := s.budget - fixed; free > 0 {
		headFree := int(float64(free) * s.head)
		if head, tail, err = s.choose(ctx, turns, headFree, free-headFree); err != nil {
			return nil, View{}, err
		}
	}
	if head == tail {
		return nil, whole, nil
	}
	view := s.compose(n, turns, head, tail, tail-head)
	after, err := s.count(ctx, view)
	return view, View{Tokens: after, Omitted: tail - head, OverBudget: after > s.budget, LostLatest: tail == len(turns)}, err
}

// choose takes turns from both ends while they fit; a turn that does not fit ends that side.
func (s *reference) choose(ctx context.Context, turns []block, headFree, tailFree int) (head, tail int, err error) {
	for sum := 0; head < len(turns); head++ {
		n, err := s.cost(ctx, turns[head])
		if err != nil {
			return 0, 0, err
		}
		if sum += n; sum > headFree {
			break
		}
	}
	tail = len(turns)
	for sum := 0; tail > head; tail-- {
		n, err := s.cost(ctx, turns[tail-1])
		if err != nil {
			return 0, 0, err
		}
		if sum += n; sum > tailFree {
			break
		}
	}
	return head, tail, nil
}
