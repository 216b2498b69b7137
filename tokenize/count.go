package tokenize

import (
	"context"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// Count is the number of tokens of the prompt that shows messages to the model
// of rollout r (its tools and template variables), generation prompt included:
// what a context window measures its budget with.
func (e *Encoder) Count(ctx context.Context, r *rollout.Rollout, messages []rollout.Message) (int, error) {
	if r == nil {
		return 0, zero.Rollout()
	}
	shown := *r
	shown.Messages = messages
	x, err := e.renderer(ctx, &shown)
	if err != nil {
		return 0, err
	}
	text, err := x.Run(x.All, x.Index, true)
	if err != nil {
		return 0, err
	}
	p := e.pieces(func(m int32) bool { return messages[m].Sampled == rollout.SampledByPolicy })
	defer e.release(p)
	var c tokens.Columns
	err = p.Encode(&c, &text, 0, len(text.Text), engine.AfterNothing)
	return c.Len(), err
}

// renderer renders contexts of r.
func (e *Encoder) renderer(ctx context.Context, r *rollout.Rollout) (*render.Renderer, error) {
	if err := e.made(); err != nil {
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
