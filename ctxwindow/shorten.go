package ctxwindow

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/turnpack/turnpack/rollout"
)

// The order in which messages lose content if the fixed messages and the latest turn alone exceed
// the budget.
const (
	giveObservation = iota // notes, and messages that answer the model
	giveAssistant          // the model's own latest message
	giveFixed              // the task
	giveStages
)

// piece is one message of a context that is being shortened.
type piece struct {
	unit
	stage int
}

// squeeze shortens the fixed messages [0, fixed), the notes in middle and the latest turn until
// they fit the budget, in the order above and as little as possible.
func (p *History) squeeze(ctx context.Context, budget, fixed int, middle []unit, latest block) ([]unit, View, error) {
	var pieces []piece
	for k := range fixed {
		stage := giveFixed
		if latest.from == latest.to && p.history[k].Role != rollout.RoleSystem {
			stage = giveObservation // without a turn the task is the latest message
		}
		pieces = append(pieces, piece{unit: unit{from: k, to: k + 1}, stage: stage})
	}
	for _, u := range middle {
		pieces = append(pieces, piece{unit: u, stage: giveObservation})
	}
	for k := latest.from; k < latest.to; k++ {
		stage := giveObservation
		if p.history[k].Role == rollout.RoleAssistant {
			stage = giveAssistant
		}
		pieces = append(pieces, piece{unit: unit{from: k, to: k + 1}, stage: stage})
	}
	// First with a marker that says what is missing, then without.
	for _, marked := range []bool{true, false} {
		for stage := range giveStages {
			view, st, ok, err := p.fit(ctx, budget, pieces, stage, marked)
			if err != nil || ok {
				return view, st, err
			}
		}
	}
	n, err := p.count(ctx, p.join(p.render(pieces, giveStages, 0, false)))
	if err != nil {
		return nil, View{}, err
	}
	return nil, View{}, rollout.Errorf(rollout.KindLimit, rollout.Where{}, "the first messages and the latest turn take %d tokens without any content, the budget is %d", n, budget).
		WithFix("raise the budget")
}

// fit returns the view with the most content, in bytes per message, that messages of stage can keep
// if those of earlier stages keep none. It returns false if none fits.
func (p *History) fit(ctx context.Context, budget int, pieces []piece, stage int, marked bool) ([]unit, View, bool, error) {
	longest := 0
	for _, pc := range pieces {
		if pc.stage == stage {
			m := p.message(pc.unit)
			longest = max(longest, len(m.Content), len(m.Reasoning))
		}
	}
	var best []unit
	var st View
	for lo, hi := 0, longest; lo <= hi; {
		limit := (lo + hi) / 2
		if best == nil {
			limit = 0 // check first that the smallest fits at all
		}
		parts := p.render(pieces, stage, limit, marked)
		view := p.join(parts)
		n, err := p.count(ctx, view)
		if err != nil {
			return nil, View{}, false, err
		}
		if n <= budget {
			best, lo = view, limit+1
			st = View{Tokens: n}
			st.Shortened, st.Emptied = shortened(parts)
		} else if best == nil {
			return nil, View{}, false, nil
		} else {
			hi = limit - 1
		}
	}
	return best, st, true, nil
}

// shortened returns the number of messages that replace longer ones, and how many of them are left
// empty.
func shortened(view []unit) (n, emptied int) {
	for _, u := range view {
		if u.msg != nil && !u.note {
			n++
			if u.bare {
				emptied++
			}
		}
	}
	return n, emptied
}

func (p *History) message(u unit) *rollout.Message {
	if u.msg != nil {
		return u.msg
	}
	return &p.history[u.from]
}

// render returns a view in which pieces of earlier stages keep nothing and those of stage keep at
// most limit bytes. If marked is false, a note with nothing left is dropped.
func (p *History) render(pieces []piece, stage, limit int, marked bool) []unit {
	var view []unit
	for _, pc := range pieces {
		keep := limit
		switch {
		case pc.stage < stage:
			keep = 0
		case pc.stage > stage:
			keep = -1
		}
		if pc.note && !marked && keep == 0 {
			continue
		}
		u := pc.unit
		if keep >= 0 {
			if m, changed := shorten(p.message(u), keep, marked); changed {
				u.msg, u.bare = m, keep == 0
			}
		}
		if last := len(view) - 1; last >= 0 && u.msg == nil && view[last].msg == nil && view[last].to == u.from {
			view[last].to = u.to
			continue
		}
		view = append(view, u)
	}
	return view
}

// shorten returns m with at most keep bytes each of its content and reasoning, not counting the
// marker, and whether m changed. Messages with parts other than text stay as they are.
func shorten(m *rollout.Message, keep int, marked bool) (*rollout.Message, bool) {
	if !textOnly(m) {
		return m, false
	}
	content, c := cutMiddle(m.Content, keep, marked)
	reasoning, r := cutMiddle(m.Reasoning, keep, marked)
	if !c && !r {
		return m, false
	}
	short := *m
	short.Content, short.Reasoning, short.Parts = content, reasoning, nil
	return &short, true
}

func textOnly(m *rollout.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(part rollout.Part) bool { return !part.IsText() })
}

// cutMiddle returns the first and last bytes of s, keep in all, cut at rune boundaries. If the
// marker would save nothing it returns s and false.
func cutMiddle(s string, keep int, marked bool) (string, bool) {
	if len(s) <= keep {
		return s, false
	}
	head, tail := keep/2, len(s)-(keep-keep/2)
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	if !marked {
		return s[:head] + s[tail:], true
	}
	out := fmt.Sprintf("%s\n[%d characters left out]\n%s", s[:head], utf8.RuneCountInString(s[head:tail]), s[tail:])
	if len(out) >= len(s) {
		return s, false
	}
	return out, true
}
