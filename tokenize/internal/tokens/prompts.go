package tokens

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Prompt is an encoded prompt of N tokens: the first Keep tokens of the prompt before it,
// then Add.
type Prompt struct {
	Keep, N int
	Add     Compact
}

// PromptEncoder encodes the prompts of one rollout in order. Of each it encodes only what
// differs from the prompt before.
type PromptEncoder struct {
	*SegmentEncoder
	Apart   bool                  // completions are encoded independently of their prompts
	Passing bool                  // a prompt is not used once the next one is encoded; Prompt.Add stays empty
	Done    map[int32]*Completion // completions so far, by message index
	// Shown lists the completions that the last prompt is the first to hold. Their ids are
	// slices of that prompt.
	Shown []*Completion
	shown []int // the token at which each begins
}

// Encode encodes r. Completions of earlier turns that appear in it keep their sampled ids.
func (e *PromptEncoder) Encode(r render.Rendering) (Prompt, error) {
	keep := e.goOn(r)
	e.Shown, e.shown = e.Shown[:0], e.shown[:0]
	at := keep.At
	if e.Apart {
		for i := r.FieldAfter(at); i < len(r.Fields); i++ {
			c := e.Done[r.Fields[i].Message]
			if c == nil || r.Fields[i].Start < at || !r.Opens(i) {
				continue
			}
			start, ok := c.begin(&r, r.Fields[i].Start)
			if !ok || start < at {
				continue
			}
			if err := e.encode(&r, at, start); err != nil {
				return Prompt{}, err
			}
			if at = start; strings.HasPrefix(r.Text[start+len(c.Text):], c.Stop) {
				e.Shown, e.shown = append(e.Shown, c), append(e.shown, e.Runs.Len())
				e.Reserve(c.Runs.Len(), start+len(c.Text))
				e.Runs.replay(&c.Runs, rollout.FlagSampled|rollout.FlagStop)
				at, e.tokens = start+len(c.Text)+len(c.Stop), e.Runs.Len()
				e.list = append(e.list, boundary{At: at, Tokens: e.tokens, begin: -1})
			}
		}
	}
	if err := e.encode(&r, at, len(r.Text)); err != nil {
		return Prompt{}, err
	}
	p := Prompt{Keep: keep.Tokens, N: e.Runs.Len()}
	if e.Passing {
		e.Shown = e.Shown[:0]
		return p, nil
	}
	p.Add = e.Runs.Clone(p.Keep, p.N)
	for k, c := range e.Shown {
		from := e.shown[k] - p.Keep
		c.Runs.IDs = p.Add.IDs[from : from+c.Runs.Len() : from+c.Runs.Len()]
	}
	return p, nil
}
