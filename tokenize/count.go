package tokenize

import (
	"context"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// Prompt is what a model reads before it answers: ids and the text they spell. Text.At returns the
// messages and bytes that an id's range comes from.
type Prompt struct {
	Text
	IDs []rollout.TokenID
	// Offsets holds the byte range [Offsets[2i], Offsets[2i+1]) of id i in the text; for a part of
	// a character it is the whole character.
	Offsets []int32
}

// Prompt returns the prompt that shows messages to the model of rollout r (its tools and template
// variables), generation prompt included: the ids that an engine makes of them, except for control
// tokens that messages spell out (Options.Specials). It equals Encode's prompt of that turn except
// for replies among the messages, whose sampled ids it does not know: package prompt does, and
// keeps them.
func (e *Encoder) Prompt(ctx context.Context, r *rollout.Rollout, messages []rollout.Message) (Prompt, error) {
	if r == nil {
		return Prompt{}, zero.Rollout()
	}
	shown := *r
	shown.Messages = messages
	x, err := e.renderer(ctx, &shown)
	if err != nil {
		return Prompt{}, err
	}
	text, err := x.Run(x.All, x.Index, true)
	if err != nil {
		return Prompt{}, err
	}
	p := e.pieces(func(m int32) bool { return messages[m].Sampled == rollout.SampledByPolicy })
	p.Whole = true
	var runs tokens.Compact
	if err := p.Encode(&runs, &text, 0, len(text.Text), engine.AfterNothing); err != nil {
		return Prompt{}, err
	}
	return Prompt{Text: textOf(x.Last, x.Index, 0, len(x.Last.Text)), IDs: runs.IDs, Offsets: p.Buf.Offsets}, nil
}

// renderer returns a renderer of contexts of r.
func (e *Encoder) renderer(ctx context.Context, r *rollout.Rollout) (*render.Renderer, error) {
	if err := e.checkMade(); err != nil {
		return nil, err
	}
	rule := e.model.ruleFor(r)
	if rule.Template == nil {
		err := e.model.lacks(r)
		if err.Kind == rollout.KindInput {
			err = err.WithFix("add chat_template.jinja to its folder: a context is measured as the template writes it")
		}
		return nil, err
	}
	return render.New(ctx, rule.Template, r, e.opts.render())
}
