package ctxwindow

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Report says what a plan did to one rollout. Reports add up over a batch.
type Report struct {
	Turns     int `json:"turns"`
	Recorded  int `json:"recorded"`  // turns whose recorded context was kept as it is
	Windowed  int `json:"windowed"`  // turns that do not see the plain history
	Omitted   int `json:"omitted"`   // history turns left out, summed over turns
	Shortened int `json:"shortened"` // messages shown shortened, summed over turns
	// OverBudget and LostLatest count turns whose context exceeds the budget or
	// lacks the latest history turn. Only the parity preset does either.
	OverBudget int `json:"over_budget"`
	LostLatest int `json:"lost_latest"`
	// Rows is the number of training rows the contexts allow: a turn whose context
	// does not begin with the one before and that turn's message starts a new row.
	Rows      int `json:"rows"`
	MaxTokens int `json:"max_tokens"` // largest planned context
	Calls     int `json:"calls"`      // calls of the counter
}

// Add adds o to r.
func (r *Report) Add(o Report) {
	r.Turns += o.Turns
	r.Recorded += o.Recorded
	r.Windowed += o.Windowed
	r.Omitted += o.Omitted
	r.Shortened += o.Shortened
	r.OverBudget += o.OverBudget
	r.LostLatest += o.LostLatest
	r.Rows += o.Rows
	r.MaxTokens = max(r.MaxTokens, o.MaxTokens)
	r.Calls += o.Calls
}

// step is what planning one turn did.
type step struct {
	tokens     int
	omitted    int
	shortened  int
	over, lost bool
}

// Plan says what each turn of r sees under policy, one context per turn of
// rollout.TurnsOf(r). A turn whose recorded context is not the plain history, or
// whose prompt ids are recorded, keeps what it has, since that is what the model
// saw; so does a turn without a message.
//
// A plan takes two to four calls of the counter per turn, each on no more than
// about a budget of messages, but for one on the plain history under HeadTail, Tail
// and Reference; or one per message and two per turn with an AdditiveCounter. A context that no shortening fits into the budget is an
// error of kind limit, located by turn.
func Plan(ctx context.Context, r *rollout.Rollout, policy Policy, counter Counter) ([]rollout.Context, Report, error) {
	if policy == nil || counter == nil {
		return nil, Report{}, fault("", "Plan needs a policy and a counter").WithFix("use None{} for no window")
	}
	if err := policy.Validate(); err != nil {
		return nil, Report{}, err
	}
	if r == nil {
		return nil, Report{}, zero.Rollout()
	}
	p, err := newPlanner(ctx, r, counter)
	if err != nil {
		return nil, Report{}, err
	}
	turns := rollout.TurnsOf(r)
	contexts := make([]rollout.Context, len(turns))
	rep := Report{Turns: len(turns)}
	var s strategy
	before := -1
	for t := range turns {
		if err := ctx.Err(); err != nil {
			return nil, Report{}, err
		}
		turn := &turns[t]
		if turn.Message >= len(r.Messages) {
			return nil, Report{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID, Turn: rollout.At(t)},
				"turn names message %d of %d", turn.Message, len(r.Messages))
		}
		if turn.Message < 0 || turn.Context.Parts != nil || turn.Context.Unknown || turn.Prompt.Captured() {
			contexts[t] = turn.Context
			rep.Recorded++
			continue
		}
		// A turn that goes back in the conversation starts afresh.
		n := p.position(turn.Message)
		if s == nil || n < before {
			s = policy.start(p)
		}
		before = n
		view, st, err := s.view(ctx, n)
		if err != nil {
			return nil, Report{}, located(err, r.ID, t)
		}
		contexts[t] = p.context(view)
		rep.add(view, st)
	}
	rep.Rows = rows(contexts, turns)
	rep.Calls = p.meter.calls
	return contexts, rep, nil
}

func (r *Report) add(view []unit, st step) {
	if view != nil {
		r.Windowed++
	}
	r.Omitted += st.omitted
	r.Shortened += st.shortened
	r.MaxTokens = max(r.MaxTokens, st.tokens)
	if st.over {
		r.OverBudget++
	}
	if st.lost {
		r.LostLatest++
	}
}

// located adds the turn to an error of this module, and to others as text.
func located(err error, id string, turn int) error {
	var e *rollout.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("rollout %q, turn %d: %w", id, turn, err)
	}
	c := *e
	c.Where.Rollout, c.Where.Turn = id, rollout.At(turn)
	return &c
}

// Apply returns a copy of r whose turns have the given contexts, one per turn of
// rollout.TurnsOf(r). r is not changed; the copy shares all else with it.
func Apply(r *rollout.Rollout, contexts []rollout.Context) (*rollout.Rollout, error) {
	if r == nil {
		return nil, zero.Rollout()
	}
	turns := slices.Clone(rollout.TurnsOf(r))
	if len(contexts) != len(turns) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "%d contexts for %d turns", len(contexts), len(turns))
	}
	for t := range turns {
		turns[t].Context = contexts[t]
	}
	out := *r
	out.Turns = turns
	return &out, nil
}

// block is a history turn: an assistant message and what follows it up to the
// next, as positions [from, to).
type block struct{ from, to int }

// planner holds the history of one rollout: its messages without exit records.
type planner struct {
	history []rollout.Message
	index   []int // position → message index
	blocks  []block
	lead    int // messages before the first assistant message
	meter   *meter
}

func newPlanner(ctx context.Context, r *rollout.Rollout, c Counter) (*planner, error) {
	p := &planner{history: r.Messages, index: make([]int, 0, len(r.Messages))}
	for i := range r.Messages {
		if r.Messages[i].Role != rollout.RoleExit {
			p.index = append(p.index, i)
		}
	}
	if n := len(p.index); n > 0 && p.index[n-1] == n-1 {
		p.history = r.Messages[:n] // exit records stand at the end
	} else {
		p.history = make([]rollout.Message, n)
		for k, i := range p.index {
			p.history[k] = r.Messages[i]
		}
	}
	p.lead = len(p.history)
	for k := range p.history {
		if p.history[k].Role != rollout.RoleAssistant {
			continue
		}
		if len(p.blocks) == 0 {
			p.lead = k
		} else {
			p.blocks[len(p.blocks)-1].to = k
		}
		p.blocks = append(p.blocks, block{k, len(p.history)})
	}
	m, err := newMeter(ctx, c, p.history)
	p.meter = m
	return p, err
}

// position is the number of history messages before message i.
func (p *planner) position(i int) int { return sort.SearchInts(p.index, i) }

// split divides the first n messages into the fixed ones and history turns. What
// stands between them before the first assistant message is a turn of its own.
func (p *planner) split(n, fixed int) (int, []block) {
	if fixed == 0 {
		fixed = p.lead
	}
	fixed = min(fixed, n)
	k := sort.Search(len(p.blocks), func(k int) bool { return p.blocks[k].from >= n })
	first := sort.Search(k, func(k int) bool { return p.blocks[k].to > fixed })
	whole := p.blocks[first:k]
	startsClean := len(whole) == 0 && fixed == n || len(whole) > 0 && whole[0].from == fixed
	endsClean := len(whole) == 0 || whole[len(whole)-1].to <= n
	if startsClean && endsClean {
		return fixed, whole
	}
	var blocks []block
	if len(whole) == 0 || whole[0].from > fixed {
		end := n
		if len(whole) > 0 {
			end = whole[0].from
		}
		blocks = append(blocks, block{fixed, end})
	}
	for _, b := range whole {
		blocks = append(blocks, block{max(b.from, fixed), min(b.to, n)})
	}
	return fixed, blocks
}

// context turns a view into message indices. nil is the plain history.
func (p *planner) context(view []unit) rollout.Context {
	if view == nil {
		return rollout.Context{}
	}
	parts := make([]rollout.ContextPart, 0, len(view))
	for _, u := range view {
		if u.msg != nil {
			from, to := p.bounds(u)
			parts = append(parts, rollout.ContextPart{From: from, To: to, Message: u.msg})
			continue
		}
		// Exit records split a range.
		for k := u.from; k < u.to; {
			end := k + 1
			for end < u.to && p.index[end] == p.index[end-1]+1 {
				end++
			}
			part := rollout.ContextPart{From: p.index[k], To: p.index[end-1] + 1}
			if last := len(parts) - 1; last >= 0 && parts[last].Message == nil && parts[last].To == part.From {
				parts[last].To = part.To
			} else {
				parts = append(parts, part)
			}
			k = end
		}
	}
	return rollout.Context{Parts: parts}
}

// bounds are the message indices that a replaced range covers.
func (p *planner) bounds(u unit) (from, to int) {
	if u.from == u.to {
		if u.from == len(p.index) {
			return p.index[u.from-1] + 1, p.index[u.from-1] + 1
		}
		return p.index[u.from], p.index[u.from]
	}
	return p.index[u.from], p.index[u.to-1] + 1
}

// rows counts the training rows that contexts allow.
func rows(contexts []rollout.Context, turns []rollout.Turn) int {
	n := 0
	for t := range turns {
		if t == 0 || !extends(contexts[t-1], turns[t-1].Message, contexts[t], turns[t].Message) {
			n++
		}
	}
	return n
}

// extends says whether context b begins with context a followed by message am.
func extends(a rollout.Context, am int, b rollout.Context, bm int) bool {
	if a.Unknown || b.Unknown || am < 0 || bm < 0 || bm <= am {
		return false
	}
	if a.Parts == nil && b.Parts == nil {
		return true
	}
	x := append(slices.Clone(partsOf(a, am)), rollout.ContextPart{From: am, To: am + 1})
	y := slices.Clone(partsOf(b, bm))
	for len(x) > 0 {
		if len(y) == 0 {
			return false
		}
		if x[0].Message != nil || y[0].Message != nil {
			if !sameMessage(x[0].Message, y[0].Message) {
				return false
			}
			x, y = x[1:], y[1:]
			continue
		}
		if x[0].From != y[0].From {
			return false
		}
		k := min(x[0].To, y[0].To)
		if x[0].From = k; k == x[0].To {
			x = x[1:]
		}
		if y[0].From = k; k == y[0].To {
			y = y[1:]
		}
	}
	return true
}

func partsOf(c rollout.Context, before int) []rollout.ContextPart {
	if c.Parts == nil {
		return []rollout.ContextPart{{From: 0, To: before}}
	}
	return c.Parts
}

func sameMessage(a, b *rollout.Message) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(*a, *b)
}
