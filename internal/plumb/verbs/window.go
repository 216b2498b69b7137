package verbs

import (
	"context"
	"flag"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/plumb/pipe"
	"github.com/turnpack/turnpack/rollout"
)

func windowVerb() pipe.Verb {
	return pipe.Verb{Name: "window", Help: "what a context window keeps (context_manager kit cases)", Setup: func(fs *flag.FlagSet) func() (pipe.Run, error) {
		policy := fs.String("policy", "swe-rl", "swe-rl|head_tail|tail|refill|none; all but swe-rl answer with the messages shown")
		return func() (pipe.Run, error) {
			switch *policy {
			case "swe-rl", "head_tail", "tail", "refill", "none":
			default:
				return pipe.Run{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "policy"}, "unknown policy %q", *policy)
			}
			return pipe.Run{Lines: pipe.Cases(func(ctx context.Context, c *windowCase) (any, error) { return c.window(ctx, *policy) })}, nil
		}
	}}
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

// pythonSpace reports whether r is white space for Python's split, which includes the
// four separator controls.
func pythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func newWindowCounter(name string) (ctxwindow.Counter, error) {
	switch name {
	case "ws":
		return windowCounter{func(s string) int { return len(strings.FieldsFunc(s, pythonSpace)) }}, nil
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

type windowFit struct {
	Kept      []int             `json:"kept"` // -1: a message that replaces others
	Unchanged bool              `json:"unchanged"`
	Omitted   int               `json:"omitted_turns"`
	Shortened int               `json:"shortened"`
	After     int               `json:"tokens_after"`
	Messages  []rollout.Message `json:"messages"`
}

func (c *windowCase) window(ctx context.Context, policy string) (any, error) {
	counter, err := newWindowCounter(c.Counter)
	if err != nil {
		return nil, err
	}
	if policy == "swe-rl" {
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
	var p ctxwindow.Policy = ctxwindow.None{}
	switch policy {
	case "head_tail":
		head := c.HeadRatio
		if head == 0 {
			head = -1
		}
		p = ctxwindow.HeadTail{Budget: c.Budget, Head: head}
	case "tail":
		p = ctxwindow.Tail{Budget: c.Budget}
	case "refill":
		p = ctxwindow.Refill{Budget: c.Budget}
	}
	f, err := ctxwindow.Fit(ctx, c.Messages, p, counter)
	if err != nil {
		return nil, err
	}
	out := windowFit{Kept: []int{}, Unchanged: f.Context.Parts == nil, Omitted: f.Omitted, Shortened: f.Shortened, After: f.Tokens, Messages: f.Messages}
	parts := f.Context.Parts
	if parts == nil {
		parts = []rollout.ContextPart{{To: len(c.Messages)}}
	}
	for _, part := range parts {
		if part.Message != nil {
			out.Kept = append(out.Kept, -1)
			continue
		}
		for i := part.From; i < part.To; i++ {
			out.Kept = append(out.Kept, i)
		}
	}
	return out, nil
}
