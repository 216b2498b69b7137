package tokens

import (
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// Prompt is an encoded prompt of n tokens: the first keep tokens of the turn before
// it, then those of add, which merged rows ask for.
type Prompt struct {
	Keep, N int
	Add     Compact
}

// PromptEncoder encodes the prompts of one rollout in order and encodes again
// only what differs from the prompt before.
type PromptEncoder struct {
	*SegmentEncoder
	Apart   bool                  // completions are encoded apart from their prompts
	Passing bool                  // nobody asks for a prompt once the next is encoded
	Done    map[int32]*Completion // completions so far, by message
	// Shown are the completions that the tokens of the last prompt hold first: their ids
	// are in the memory of that prompt now.
	Shown []*Completion
	shown []int // where they begin
}

// Encode encodes r. Completions of earlier turns that stand in it keep the ids
// that were sampled.
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
	p.Add = e.Runs.Clone(&e.Prompts, p.Keep, p.N)
	for k, c := range e.Shown {
		from := e.shown[k] - p.Keep
		c.Runs.IDs = p.Add.IDs[from : from+c.Runs.Len() : from+c.Runs.Len()]
	}
	return p, nil
}

// IDs are those of the last prompt.
func (e *PromptEncoder) IDs() []rollout.TokenID { return e.Runs.IDs }

// Slice is a part of the last prompt.
func (e *PromptEncoder) Slice(from, to int) Columns { return e.Runs.Slice(from, to) }
