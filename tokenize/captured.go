package tokenize

import (
	"sort"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

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
	by    alignment         // of other ids
	told  int               // the turn whose prompt by holds; −1 for none
}

// rendered takes notice of a rendered prompt that shares keep ids with the one before.
func (c *recall) rendered(keep int) {
	c.equal = min(c.equal, keep)
	c.by.forget(len(c.by.cols.ids), keep)
}

// attribute reports whether the rendered prompt of turn i says what the recorded ids
// hold: they are the same, or spell the same.
func (c *recall) attribute(i int, rendered columns) bool {
	t := &c.turns[i]
	keep := 0
	if base, ok := t.Prompt.Base.Get(); ok && base == c.turn {
		keep = min(t.Prompt.Keep, len(c.ids))
		c.ids = append(c.ids[:keep], t.Prompt.Add...)
	} else {
		c.ids = append(c.ids[:0], c.captured(i)...)
	}
	c.equal = min(c.equal, keep)
	c.by.forget(keep, rendered.len())
	n := min(len(c.ids), rendered.len())
	for c.equal < n && c.ids[c.equal] == rendered.ids[c.equal] {
		c.equal++
	}
	told := c.equal == len(c.ids) && c.equal == rendered.len() || c.respell(i, rendered)
	c.ids, c.turn = append(c.ids, t.Output...), i
	return told
}

// respell fills j.respelt[i], against that of the turn before if there is one.
func (c *recall) respell(i int, rendered columns) bool {
	keep := 0
	if c.told == i-1 {
		keep = c.by.at().recorded
	}
	if c.told = -1; !c.by.reach(c.ids, rendered) {
		return false
	}
	c.told = i
	if c.respelt == nil {
		c.respelt = make([]prompt, len(c.turns))
	}
	c.respelt[i] = prompt{keep: keep, n: len(c.ids)}
	if c.opts.Mode != PerStep { // whose rows are finished at once
		c.respelt[i].add = c.by.cols.slice(keep, len(c.ids)).clone()
	}
	return true
}

// respelled returns the columns of recorded ids, where the template writes reply. They
// hold what the reply holds as far as both spell the same from the beginning and
// towards the end; what differs in between (the white space of a call's arguments)
// holds what stands at either side of it.
func (j *job) respelled(message int32, reply *columns, ids []rollout.TokenID) columns {
	partFlags(reply)
	spell := spelling(j.model.Tokenizer.Vocab(), j.added)
	want, have := spelled(reply.ids, spell), spelled(ids, spell)
	head := commonText(want.text, have.text)
	tail := commonEnd(want.text[head:], have.text[head:])
	moved := len(want.text) - len(have.text)
	between := want.flags(reply, head-1, head) | want.flags(reply, len(want.text)-tail, len(want.text)-tail+1)
	if message >= 0 && between&(rollout.FlagContent|rollout.FlagReasoning|rollout.FlagToolCall) == 0 {
		between = rollout.FlagContent
	}
	var out columns
	from := 0
	for k, id := range ids {
		to := have.ends[k]
		flags := between
		switch {
		case to <= head:
			flags = want.flags(reply, from, to)
		case from >= len(have.text)-tail:
			flags = want.flags(reply, from+moved, to+moved)
		}
		flags &^= rollout.FlagSpecial
		if _, ok := j.added.find(id); ok {
			flags |= rollout.FlagSpecial
		}
		out.add(id, message, flags)
		from = to
	}
	return out
}

// spelledIDs is what ids spell, and where each of them ends in it.
type spelledIDs struct {
	text string
	ends []int
}

func spelled(ids []rollout.TokenID, spell func(rollout.TokenID) string) spelledIDs {
	var text strings.Builder
	ends := make([]int, len(ids))
	for k, id := range ids {
		text.WriteString(spell(id))
		ends[k] = text.Len()
	}
	return spelledIDs{text.String(), ends}
}

// flags are those that c, which s spells, has in bytes [from, to).
func (s *spelledIDs) flags(c *columns, from, to int) (flags rollout.Flag) {
	if from < 0 {
		return 0
	}
	for k := sort.SearchInts(s.ends, from+1); k < len(s.ends); k++ {
		if k > 0 && s.ends[k-1] >= to {
			break
		}
		flags |= c.flags[k]
	}
	return flags
}

// commonEnd is the number of bytes that two texts share at their ends.
func commonEnd(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
