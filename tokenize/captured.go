package tokenize

import "github.com/turnpack/turnpack/rollout"

// recorded reports whether the engine recorded what turn i saw and sampled.
func (j *job) recorded(i int) bool { return j.turns[i].Prompt.Captured() && j.turns[i].Output != nil }

// captured expands the recorded prompt of turn i.
func (j *job) captured(i int) []rollout.TokenID {
	var chain []int
	for k := i; ; {
		chain = append(chain, k)
		base, ok := j.turns[k].Prompt.Base.Get()
		if !ok || base >= k {
			break
		}
		k = base
	}
	var ids []rollout.TokenID
	for c := len(chain) - 1; c >= 0; c-- {
		p := &j.turns[chain[c]].Prompt
		if c < len(chain)-1 {
			ids = append(ids, j.turns[chain[c+1]].Output...)
			ids = ids[:min(p.Keep, len(ids))]
		}
		ids = append(ids, p.Add...)
	}
	return ids
}

// recall expands recorded prompts one after the other. Each mostly begins with
// the prompt and the output of the turn before, and is compared with a rendered
// prompt that mostly begins with the one before, so that little of either is new.
type recall struct {
	*job
	turn  int               // whose prompt and output ids holds; −1 for none
	ids   []rollout.TokenID // owned
	equal int               // of ids, as many as the rendered prompt is known to begin with
}

// same reports whether the rendered prompt of turn i has exactly the recorded
// ids.
func (c *recall) same(i int, rendered []rollout.TokenID) bool {
	t := &c.turns[i]
	if base, ok := t.Prompt.Base.Get(); ok && base == c.turn {
		keep := min(t.Prompt.Keep, len(c.ids))
		c.ids, c.equal = append(c.ids[:keep], t.Prompt.Add...), min(c.equal, keep)
	} else {
		c.ids, c.equal = append(c.ids[:0], c.captured(i)...), 0
	}
	n := min(len(c.ids), len(rendered))
	for c.equal < n && c.ids[c.equal] == rendered[c.equal] {
		c.equal++
	}
	same := c.equal == len(c.ids) && c.equal == len(rendered)
	c.ids, c.turn = append(c.ids, t.Output...), i
	return same
}
