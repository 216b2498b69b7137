package tokenize

import (
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/internal/tokens"
)

// recorded reports whether the engine recorded what turn i saw and sampled.
func (j *job) recorded(i int) bool { return j.turns[i].Prompt.Captured() && j.turns[i].Output != nil }

// captured returns the recorded prompt ids of turn i.
func (j *job) captured(i int) ([]rollout.TokenID, error) {
	return (&rollout.Rollout{ID: j.r.ID, Turns: j.turns}).PromptTokens(nil, i)
}

// unstopped reports whether no stop token ended turn t.
func (j *job) unstopped(t *rollout.Turn) bool { return j.model.rule().Unstopped(t) }

// capturedMatcher compares recorded prompts with rendered ones, turn by turn. A recorded prompt
// mostly begins with the prompt and output of the turn before, and a rendered prompt with the one
// before, so that little of either is new.
type capturedMatcher struct {
	*job
	turn           int               // the turn whose prompt and output ids holds; −1 = none
	ids            []rollout.TokenID // owned
	equal          int               // leading ids known to equal those of the rendered prompt
	by             *tokens.Alignment // if the ids differ
	attributedTurn int               // the turn whose prompt by holds; −1 = none
}

// rendered is called for each rendered prompt; keep is how many ids it shares with the previous
// one.
func (c *capturedMatcher) rendered(keep int) {
	c.equal = min(c.equal, keep)
	c.by.Forget(len(c.by.Cols.IDs), keep)
}

// attribute reports whether the rendered prompt of turn i gives the origin of the recorded ids:
// they are the same, or spell the same text.
func (c *capturedMatcher) attribute(i int, rendered *tokens.Compact) bool {
	t, shown := &c.turns[i], rendered.IDs
	keep := 0
	if base, ok := t.Prompt.Base.Get(); ok && base == c.turn {
		keep = min(t.Prompt.Keep, len(c.ids))
		c.ids = append(c.ids[:keep], t.Prompt.Add...)
	} else {
		c.ids, _ = c.captured(i) // lineage or step returns the error
	}
	c.equal = min(c.equal, keep)
	c.by.Forget(keep, len(shown))
	n := min(len(c.ids), len(shown))
	for c.equal < n && c.ids[c.equal] == shown[c.equal] {
		c.equal++
	}
	told := c.equal == len(c.ids) && c.equal == len(shown) || c.respell(i, rendered)
	c.ids, c.turn = append(c.ids, t.Output...), i
	return told
}

// respell fills j.respelt[i], relative to the turn before if that is attributed in this way.
func (c *capturedMatcher) respell(i int, rendered *tokens.Compact) bool {
	keep := 0
	if c.attributedTurn == i-1 {
		keep = c.by.At().Recorded
	}
	if c.attributedTurn = -1; !c.by.Reach(c.ids, rendered) {
		return false
	}
	c.attributedTurn = i
	if c.respelt == nil {
		c.respelt = make([]tokens.Prompt, len(c.turns))
	}
	c.respelt[i] = tokens.Prompt{Keep: keep, N: len(c.ids)}
	if c.opts.Mode != PerStep { // per-step rows are finished at once
		c.respelt[i].Add = tokens.CompactOf(c.by.Cols.Slice(keep, len(c.ids)))
	}
	return true
}
