package ctxwindow

import (
	"context"
	"slices"
	"sort"

	"github.com/turnpack/turnpack/rollout"
)

// block is a history turn: an assistant message and the messages up to the next one, as positions
// [from, to).
type block struct{ from, to int }

// History holds the messages of one rollout so far, without exit records, and the counts already
// made. It is not safe for concurrent use.
type History struct {
	history []rollout.Message
	index   []int // position → message index
	blocks  []block
	lead    int // messages before the first assistant message
	shown   int // messages before the call being planned

	counter     Counter
	calls       int           // of the counter
	costs       map[block]int // tokens that blocks add after the fixed messages
	fixedCounts map[int]int   // counts of the first n messages, by n
	scratch     []rollout.Message
}

// Messages returns the messages before the call being planned. They must not be changed.
func (h *History) Messages() []rollout.Message { return h.history[:h.shown:h.shown] }

// Count returns the number of tokens of a context that shows parts, as in View.Parts, except that
// nil shows nothing.
func (h *History) Count(ctx context.Context, parts []rollout.ContextPart) (int, error) {
	for _, p := range parts {
		if err := h.check(p, h.shown); err != nil {
			return 0, err
		}
	}
	return h.count(ctx, unitsOf(parts))
}

func unitsOf(parts []rollout.ContextPart) []unit {
	units := make([]unit, len(parts))
	for i, p := range parts {
		units[i] = unit{from: p.From, to: p.To, msg: p.Message}
	}
	return units
}

func newHistory(r *rollout.Rollout, c Counter) *History {
	h := &History{counter: c, costs: map[block]int{}, fixedCounts: map[int]int{}, index: make([]int, 0, len(r.Messages))}
	exits := false
	for i := range r.Messages {
		exit := r.Messages[i].Role == rollout.RoleExit
		if exits && !exit { // an exit record among the messages: copy the others
			h.history, h.index, h.blocks, h.lead = nil, nil, nil, 0
			for i := range r.Messages {
				h.append(&r.Messages[i], i)
			}
			return h
		}
		if exits = exits || exit; !exit {
			h.history = r.Messages[:i+1] // shared, so that a counter recognizes the slice
			h.index = append(h.index, i)
			h.noteTurn(i)
		}
	}
	return h
}

// append adds message i of the rollout to the history.
func (h *History) append(m *rollout.Message, i int) {
	if m.Role == rollout.RoleExit {
		return
	}
	h.history, h.index = append(h.history, *m), append(h.index, i)
	h.noteTurn(len(h.history) - 1)
}

// noteTurn adds the message at position k, the last one, to its history turn.
func (h *History) noteTurn(k int) {
	switch last := len(h.blocks) - 1; {
	case h.history[k].Role == rollout.RoleAssistant:
		h.blocks = append(h.blocks, block{k, k + 1})
	case last >= 0:
		h.blocks[last].to = k + 1
	default:
		h.lead = k + 1
	}
}

// viewAt returns the view of s for the call after n messages, checked.
func (h *History) viewAt(ctx context.Context, policy Policy, s Strategy, n int) (View, error) {
	if s == nil {
		return View{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "window"}, "the policy %T starts nothing", policy).WithFix("return a Strategy from Start")
	}
	h.shown = n
	v, err := s.View(ctx, n)
	if err != nil {
		return View{}, failed(err, rollout.KindInput, "the policy")
	}
	if v.Parts == nil {
		return v, nil
	}
	if len(v.Parts) == 0 {
		return View{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "window"}, "the policy %T shows nothing of %d messages", policy, n).
			WithFix("return nil Parts for the history as it is")
	}
	for _, p := range v.Parts {
		if err := h.check(p, n); err != nil {
			return View{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "window"}, "the policy %T: %w", policy, err)
		}
	}
	return v, nil
}

// check rejects a part that is not within the first n messages, and a message without a role, which
// no template can show.
func (h *History) check(p rollout.ContextPart, n int) error {
	if p.From < 0 || p.To > n || p.From > p.To || p.Message == nil && p.From == p.To {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Parts"}, "a part shows messages [%d, %d) of %d", p.From, p.To, n)
	}
	if p.Message != nil && p.Message.Role == "" {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Parts"}, "a message (a note, a summary) shown in place of messages [%d, %d) has no role", p.From, p.To)
	}
	return nil
}

// position returns the number of history messages before message i.
func (h *History) position(i int) int { return sort.SearchInts(h.index, i) }

// split divides the first n messages into the fixed ones and history turns. Other messages before
// the first assistant message form a turn of their own.
func (h *History) split(n, fixed int) (int, []block) {
	if fixed == 0 {
		fixed = h.lead
	}
	fixed = min(fixed, n)
	k := sort.Search(len(h.blocks), func(k int) bool { return h.blocks[k].from >= n })
	first := sort.Search(k, func(k int) bool { return h.blocks[k].to > fixed })
	end := n
	if first < k {
		end = h.blocks[first].from
		if end == fixed && h.blocks[k-1].to <= n {
			return fixed, h.blocks[first:k]
		}
	}
	var blocks []block
	if end > fixed {
		blocks = append(blocks, block{fixed, end})
	}
	for _, b := range h.blocks[first:k] {
		blocks = append(blocks, block{max(b.from, fixed), min(b.to, n)})
	}
	return fixed, blocks
}

// context converts parts from positions in the history to message numbers in the rollout, which
// differ if the rollout has exit records.
func (h *History) context(view []rollout.ContextPart) rollout.Context {
	if view == nil {
		return rollout.Context{}
	}
	parts := make([]rollout.ContextPart, 0, len(view))
	for _, p := range view {
		if p.Message != nil {
			from, to := h.bounds(p)
			parts = append(parts, rollout.ContextPart{From: from, To: to, Message: p.Message})
			continue
		}
		for k := p.From; k < p.To; {
			end := k + 1
			if h.index[p.To-1]-h.index[k] == p.To-1-k { // no exit record in between
				end = p.To
			}
			for end < p.To && h.index[end] == h.index[end-1]+1 {
				end++
			}
			parts = append(parts, rollout.ContextPart{From: h.index[k], To: h.index[end-1] + 1})
			k = end
		}
	}
	return rollout.Context{Parts: parts}
}

// bounds returns the message numbers in the rollout that a replaced part covers.
func (h *History) bounds(p rollout.ContextPart) (from, to int) {
	switch {
	case p.From < p.To:
		return h.index[p.From], h.index[p.To-1] + 1
	case p.From > 0:
		return h.index[p.From-1] + 1, h.index[p.From-1] + 1
	}
	return 0, 0
}

// write returns the messages that v shows of the first n. For nil Parts they share the history's
// memory.
func (h *History) write(v View, n int) []rollout.Message {
	if v.Parts == nil {
		return h.history[:n:n]
	}
	return slices.Clone(h.messages(unitsOf(v.Parts)))
}
