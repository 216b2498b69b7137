package tokenize

import (
	"sort"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// completion is what the policy sampled in one turn.
type completion struct {
	message int32 // −1 = token ids only
	turn    int32
	// text is the sampled text without its stop marker; "" when only ids are known.
	text string
	// first is the offset in text of the first byte that came from the message,
	// negative where the prompt wrote that.
	first int
	stop  string // the stop marker's text, "" when none was sampled
	cols  columns
}

// prompt is an encoded prompt of n tokens: the first keep tokens of the turn before
// it, then those of add, which Merged rows ask for.
type prompt struct {
	keep, n int
	add     columns
}

// boundary is a place in a prompt after which the encoding of the rest is
// independent of what went before.
type boundary struct{ at, tokens int }

// boundaries are those of the prompt that was encoded last.
type boundaries struct {
	last rendering
	list []boundary
}

// keep goes on to the prompt r, and returns the last boundary that it shares with
// the one before.
func (b *boundaries) keep(r rendering, longest int) boundary {
	common := commonPrefix(&b.last, &r)
	n := sort.Search(len(b.list), func(i int) bool { return b.list[i].at+longest > common })
	b.last, b.list = r, b.list[:n]
	if n == 0 {
		return boundary{}
	}
	return b.list[n-1]
}

func (b *boundaries) add(at, tokens int) { b.list = append(b.list, boundary{at, tokens}) }

// promptEncoder encodes the prompts of one rollout in order and encodes again
// only what differs from the prompt before.
type promptEncoder struct {
	boundaries
	stretches *stretchEncoder
	edges     Edges
	cols      stack                 // tokens of the last prompt
	done      map[int32]*completion // completions so far, by message
}

// encode encodes r. Completions of earlier turns that stand in it keep the ids
// that were sampled.
func (e *promptEncoder) encode(r rendering) (prompt, error) {
	if !e.cols.viewed {
		e.stretches.into = &e.cols
	}
	keep := e.keep(r, e.stretches.longest)
	e.cols.truncate(keep.tokens)
	at := keep.at
	encodeTo := func(to int) error {
		if at >= to {
			return nil
		}
		err := e.stretches.each(&r, at, to, func(s *stretch, end int) {
			e.cols.append(s.cols)
			if end < to {
				e.add(end, e.cols.len())
			}
		})
		at = to
		return err
	}
	if e.edges == EdgesSampled {
		for i := r.after(at); i < len(r.fields); i++ {
			c := e.done[r.fields[i].message]
			if c == nil || r.fields[i].start < at || !r.opens(i) {
				continue
			}
			start, ok := c.begin(&r, r.fields[i].start)
			if !ok || start < at {
				continue
			}
			if err := encodeTo(start); err != nil {
				return prompt{}, err
			}
			if strings.HasPrefix(r.text[start+len(c.text):], c.stop) {
				n := e.cols.len()
				e.cols.append(c.cols)
				for i := range e.cols.flags[n:] {
					e.cols.flags[n+i] &^= rollout.FlagSampled | rollout.FlagStop
				}
				at = start + len(c.text) + len(c.stop)
				e.add(at, e.cols.len())
			}
		}
	}
	if err := encodeTo(len(r.text)); err != nil {
		return prompt{}, err
	}
	p := prompt{keep: keep.tokens, n: e.cols.len()}
	if !e.cols.viewed {
		p.add = e.cols.columns().slice(p.keep, p.n).clone()
	}
	return p, nil
}

// begin returns where the completion begins in r, given the first byte of its
// message there, if its text stands there: what the template rewrote is no longer
// what was sampled, but text like any other.
func (c *completion) begin(r *rendering, first int) (start int, ok bool) {
	start = first - c.first
	return start, c.cols.len() > 0 && start >= 0 && strings.HasPrefix(r.text[start:], c.text)
}
