package tokenize

import (
	"context"

	"github.com/turnpack/turnpack/rollout"
)

// Count is the number of tokens of the prompt that shows messages to the model
// of rollout r (its tools and template variables), generation prompt included:
// what a context window measures its budget with.
func (e *Encoder) Count(ctx context.Context, r *rollout.Rollout, messages []rollout.Message) (int, error) {
	text, err := e.render(ctx, r, messages)
	if err != nil {
		return 0, err
	}
	p := newPieceEncoder(e.model.Tokenizer, e.opts.Specials, func(m int32) bool { return messages[m].Sampled == rollout.SampledByPolicy })
	var c columns
	err = p.encode(&c, &text, 0, len(text.text), nil)
	return c.len(), err
}

// render is the prompt that shows messages to the model of rollout r.
func (e *Encoder) render(ctx context.Context, r *rollout.Rollout, messages []rollout.Message) (rendering, error) {
	if e.model.Template == nil {
		return rendering{}, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "the model has no chat template, so a context cannot be measured")
	}
	shown := *r
	shown.Messages = messages
	x, err := newRenderer(ctx, e.model, &shown, e.opts.Kwargs, e.opts.Now)
	if err != nil {
		return rendering{}, err
	}
	return x.run(x.all, x.index, true)
}
