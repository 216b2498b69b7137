package verbs

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/internal/pytext"
	"github.com/turnpack/turnpack/rollout"
)

func windowVerb() pipe.Verb {
	return pipe.Plain("window", "what a context window keeps (context_manager kit cases)", pipe.Cases(windowLine))
}

type windowCase struct {
	Counter   string            `json:"counter"`
	Budget    int               `json:"budget"`
	HeadRatio float64           `json:"head_ratio"`
	Messages  []rollout.Message `json:"messages"`
}

// windowCounter is one of the kit's two token counters. It counts the text "<ROLE>
// CONTENT </s> " of each message and "<assistant> ".
type windowCounter struct{ count func(string) int }

func (c windowCounter) Count(_ context.Context, ms []rollout.Message) (int, error) {
	var b strings.Builder
	for _, m := range ms {
		b.WriteString("<" + string(m.Role) + "> " + m.Content + " </s> ")
	}
	b.WriteString("<assistant> ")
	return c.count(b.String()), nil
}

func newWindowCounter(name string) (ctxwindow.Counter, error) {
	switch name {
	case "ws":
		return windowCounter{func(s string) int { return len(strings.FieldsFunc(s, pytext.IsSpace)) }}, nil
	case "chars4":
		return windowCounter{func(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }}, nil
	}
	return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "counter"}, "unknown counter %q, want ws or chars4", name)
}

type windowDecision struct {
	Total       int   `json:"total_tokens"`
	Fixed       int   `json:"fixed_tokens"`
	TurnLengths []int `json:"turn_lengths"`
	TurnCosts   []int `json:"turn_costs"`
	Kept        []int `json:"kept"`
	Unchanged   bool  `json:"unchanged"`
	Omitted     *int  `json:"omitted_turns"`
	After       int   `json:"tokens_after"`
}

func windowLine(ctx context.Context, c *windowCase) (any, error) {
	counter, err := newWindowCounter(c.Counter)
	if err != nil {
		return nil, err
	}
	d, err := ctxwindow.SWERLPolicy{Budget: c.Budget, Head: c.HeadRatio}.Decide(ctx, c.Messages, counter)
	if err != nil {
		return nil, err
	}
	out := windowDecision{Total: d.Total, Fixed: d.Fixed, TurnLengths: d.TurnLengths, TurnCosts: d.TurnCosts, Kept: d.Kept, Unchanged: d.Unchanged, After: d.After}
	if !d.Unchanged {
		out.Omitted = &d.Omitted
	}
	return out, nil
}
