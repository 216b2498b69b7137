package ctxwindow

import (
	"context"
	"reflect"
	"slices"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Report says what a plan did to one rollout. Add sums reports over a batch.
type Report struct {
	Turns     int `json:"turns"`
	Recorded  int `json:"recorded"`  // turns whose recorded context was kept as it is
	Windowed  int `json:"windowed"`  // turns that do not see the plain history
	Omitted   int `json:"omitted"`   // history turns left out, summed over turns
	Shortened int `json:"shortened"` // messages shown shortened, summed over turns
	Emptied   int `json:"emptied"`   // shortened messages with no content left but the marker
	// OverBudget and LostLatest count turns whose context exceeds the budget or lacks the latest
	// history turn. Of this package's policies only SWERLPolicy makes such contexts.
	OverBudget int `json:"over_budget"`
	LostLatest int `json:"lost_latest"`
	// Rows is the number of training rows the contexts allow: a turn starts a new row unless its
	// context begins with the previous turn's context and message.
	Rows      int `json:"rows"`
	MaxTokens int `json:"max_tokens"` // largest planned context
	Calls     int `json:"calls"`      // calls of the counter
}

// Add adds o to r; MaxTokens becomes the larger of the two.
func (r *Report) Add(o Report) {
	r.Turns += o.Turns
	r.Recorded += o.Recorded
	r.Windowed += o.Windowed
	r.Omitted += o.Omitted
	r.Shortened += o.Shortened
	r.Emptied += o.Emptied
	r.OverBudget += o.OverBudget
	r.LostLatest += o.LostLatest
	r.Rows += o.Rows
	r.MaxTokens = max(r.MaxTokens, o.MaxTokens)
	r.Calls += o.Calls
}

// Plan returns what each turn of r sees under policy, one context per turn of rollout.TurnsOf(r). A
// turn whose recorded context is not the plain history, or whose prompt ids are recorded, keeps its
// context, since that is what the model saw; so does a turn without a message.
//
// Plan calls the counter two to four times per turn, each time with about a budget of messages at
// most, except for one call with the plain history under HeadTail, Tail and SWERLPolicy. A context
// that no shortening fits into the budget is an error of kind limit that names the turn.
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
	h := newHistory(r, counter)
	turns := rollout.TurnsOf(r)
	contexts := make([]rollout.Context, len(turns))
	rep := Report{Turns: len(turns)}
	var s Strategy
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
		// A turn whose reply comes earlier in the conversation than the last one starts anew.
		n := h.position(turn.Message)
		if s == nil || n < before {
			s = policy.Start(h)
		}
		before = n
		view, err := h.viewAt(ctx, policy, s, n)
		if err != nil {
			return nil, Report{}, rollout.In(err, rollout.Where{Rollout: r.ID, Turn: rollout.At(t)})
		}
		contexts[t] = h.context(view.Parts)
		rep.add(view)
	}
	rep.Rows = rows(contexts, turns)
	rep.Calls = h.calls
	return contexts, rep, nil
}

func (r *Report) add(v View) {
	if v.Parts != nil {
		r.Windowed++
	}
	r.Omitted += v.Omitted
	r.Shortened += v.Shortened
	r.Emptied += v.Emptied
	r.MaxTokens = max(r.MaxTokens, v.Tokens)
	if v.OverBudget {
		r.OverBudget++
	}
	if v.LostLatest {
		r.LostLatest++
	}
}

// Apply returns a copy of r whose turns have the given contexts, one per turn of
// rollout.TurnsOf(r). r is not changed; the copy shares everything else with r.
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

// rows returns the number of training rows that contexts allow.
func rows(contexts []rollout.Context, turns []rollout.Turn) int {
	n := 0
	for t := range turns {
		if t == 0 || !extends(contexts[t-1], turns[t-1].Message, contexts[t], turns[t].Message) {
			n++
		}
	}
	return n
}

// extends reports whether context b begins with context a followed by message am.
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
			if !reflect.DeepEqual(x[0].Message, y[0].Message) {
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
