package tokens

import (
	"sort"
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

// boundary is a place in a prompt after which the encoding of the rest is
// independent of what went before.
type boundary struct{ At, Tokens int }

// Boundaries are those of the prompt that was encoded last.
type Boundaries struct {
	last render.Rendering
	list []boundary
}

// Keep goes on to the prompt r, and returns the last boundary that it shares with
// the one before.
func (b *Boundaries) Keep(r render.Rendering, longest int) boundary {
	common := render.CommonPrefix(&b.last, &r)
	n := sort.Search(len(b.list), func(i int) bool { return b.list[i].At+longest > common })
	b.last, b.list = r, b.list[:n]
	if n == 0 {
		return boundary{}
	}
	return b.list[n-1]
}

func (b *Boundaries) Add(at, tokens int) { b.list = append(b.list, boundary{at, tokens}) }

// PromptEncoder encodes the prompts of one rollout in order and encodes again
// only what differs from the prompt before.
type PromptEncoder struct {
	Boundaries
	Segments *SegmentEncoder
	Apart    bool                  // completions are encoded apart from their prompts
	Passing  bool                  // nobody asks for a prompt once the next is encoded
	Runs     Compact               // the tokens of the last prompt
	Bytes    int                   // of text that the prompts hold in all, about
	Done     map[int32]*Completion // completions so far, by message
	// Shown are the completions that the tokens of the last prompt hold first: their ids
	// are in the memory of that prompt now.
	Shown []*Completion
	shown []int // where they begin
}

// Encode encodes r. Completions of earlier turns that stand in it keep the ids
// that were sampled.
func (e *PromptEncoder) Encode(r render.Rendering) (Prompt, error) {
	e.Segments.into = &e.Runs
	keep := e.Keep(r, e.Segments.Longest)
	e.Runs.truncate(keep.Tokens)
	e.Shown, e.shown = e.Shown[:0], e.shown[:0]
	at := keep.At
	encodeTo := func(to int) error {
		if at >= to {
			return nil
		}
		err := e.Segments.Each(&r, at, to, func(s *CachedSegment, end int) {
			e.reserve(s.runs.Len(), end)
			e.Runs.replay(&s.runs, 0)
			if end < to {
				e.Add(end, e.Runs.Len())
			}
		})
		at = to
		return err
	}
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
			if err := encodeTo(start); err != nil {
				return Prompt{}, err
			}
			if strings.HasPrefix(r.Text[start+len(c.Text):], c.Stop) {
				e.Shown, e.shown = append(e.Shown, c), append(e.shown, e.Runs.Len())
				e.reserve(c.Runs.Len(), start+len(c.Text))
				e.Runs.replay(&c.Runs, rollout.FlagSampled|rollout.FlagStop)
				at = start + len(c.Text) + len(c.Stop)
				e.Add(at, e.Runs.Len())
			}
		}
	}
	if err := encodeTo(len(r.Text)); err != nil {
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

// reserve makes room for n more tokens, which end at byte end of a prompt, and where
// they are many for those of the prompts to come: else most of them would be moved more
// than once.
func (e *PromptEncoder) reserve(n, end int) {
	have := e.Runs.Len() + n
	if have < hugeIDs/4 || cap(e.Runs.IDs) >= have {
		return
	}
	more := float64(have) * float64(max(0, e.Bytes-end)) / float64(max(1, end))
	e.Runs.grow(n + int(min(more, 8*float64(have)))*17/16)
}

// IDs are those of the last prompt.
func (e *PromptEncoder) IDs() []rollout.TokenID { return e.Runs.IDs }

// Slice is a part of the last prompt.
func (e *PromptEncoder) Slice(from, to int) Columns { return e.Runs.Slice(from, to) }
