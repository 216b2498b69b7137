package tokenize

import (
	"context"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// Counter counts the tokens of contexts of one rollout, as the budget of a context window needs. It
// remembers the encoded text between control tokens and the rollout's messages in the template's
// form, so that a window that moves over a conversation encodes each message about once, and
// continues from what a context shares with the previous one. The rollout may grow between counts,
// but its messages must not change. A Counter is not safe for concurrent use.
type Counter struct {
	e         *Encoder
	r         *rollout.Rollout
	prepared  rollout.Rollout // r at the time render was made
	render    *render.Renderer
	stretches *tokens.SegmentEncoder
	others    []rollout.Message // messages of the current call that are not the rollout's
}

// otherMessages is the number given to the first message that is not the rollout's. It is larger
// than the number of any message of the rollout.
const otherMessages = 1 << 30

// Counter returns a counter for contexts of r, rendered with its tools and template variables.
func (e *Encoder) Counter(r *rollout.Rollout) *Counter {
	return &Counter{e: e, r: r}
}

// prepare sets up a counter on first use, and again after its rollout has grown by the square root
// of its length: messages added since the last preparation cost a little in each count, and earlier
// ones a little in each preparation.
func (c *Counter) prepare(ctx context.Context) error {
	if c.e == nil {
		return zero.Value("tokenize.Counter", "Encoder.Counter")
	}
	if c.r == nil {
		return zero.Rollout()
	}
	more := len(c.r.Messages) - len(c.prepared.Messages)
	if c.render != nil && more >= 0 && more*more <= len(c.r.Messages) {
		return nil
	}
	prepared := *c.r
	render, err := c.e.renderer(ctx, &prepared)
	if err != nil {
		return err
	}
	c.prepared, c.render = prepared, render
	if c.stretches == nil {
		c.stretches = tokens.NewSegmentEncoder(c.e.pieces(func(m int32) bool {
			if m >= otherMessages {
				return c.others[m-otherMessages].Sampled == rollout.SampledByPolicy
			}
			return c.r.Messages[m].Sampled == rollout.SampledByPolicy
		}), true)
	}
	c.stretches.Restart()
	return nil
}

// Count returns the number of tokens of the prompt that shows messages, generation prompt included.
func (c *Counter) Count(ctx context.Context, messages []rollout.Message) (int, error) {
	if err := c.prepare(ctx); err != nil {
		return 0, err
	}
	c.render.Ctx = ctx
	text, err := c.render.Prompt(&rollout.Turn{Context: rollout.Context{Parts: c.parts(messages)}})
	if err != nil {
		return 0, err
	}
	return c.stretches.Count(text)
}

// parts returns messages as parts of the rollout, as far as they are the rollout's own and in its
// order. The others are numbered from otherMessages on.
func (c *Counter) parts(messages []rollout.Message) []rollout.ContextPart {
	c.others = c.others[:0]
	all, prepared := c.r.Messages, len(c.prepared.Messages)
	if len(messages) > 0 && len(messages) <= prepared && &messages[0] == &all[0] {
		return []rollout.ContextPart{{To: len(messages)}}
	}
	parts := []rollout.ContextPart{} // not nil, which means the plain history
	at := 0                          // position in the rollout
	for i := range messages {
		m := &messages[i]
		if m.Role == rollout.RoleExit {
			continue
		}
		k := at
		for k < len(all) && !sharesText(m, &all[k]) {
			k++
		}
		last := len(parts) - 1
		switch {
		case k == len(all):
			n := otherMessages + len(c.others)
			c.others = append(c.others, *m)
			parts = append(parts, rollout.ContextPart{From: n, To: n + 1, Message: m})
			continue
		case k >= prepared:
			parts = append(parts, rollout.ContextPart{From: k, To: k + 1, Message: m})
		case last >= 0 && parts[last].Message == nil && parts[last].To == k:
			parts[last].To++
		default:
			parts = append(parts, rollout.ContextPart{From: k, To: k + 1})
		}
		at = k + 1
	}
	return parts
}

// sharesText reports whether a and b are the same message. It compares texts, and slices by their
// memory only.
func sharesText(a, b *rollout.Message) bool {
	return a.Content == b.Content && a.Role == b.Role && a.Reasoning == b.Reasoning && a.ToolCallID == b.ToolCallID && a.Name == b.Name &&
		a.Sampled == b.Sampled && same(a.ToolCalls, b.ToolCalls) && same(a.Parts, b.Parts)
}

func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
