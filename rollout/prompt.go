package rollout

import "slices"

// PromptTokens appends the full prompt ids of a turn to dst, resolving the turns that it is
// stored against. It returns dst unchanged if the prompt was not captured, and a KindInput
// error if the references are broken.
func (r *Rollout) PromptTokens(dst []TokenID, turn int) ([]TokenID, error) {
	if r == nil {
		return dst, nilRollout()
	}
	type cutAt struct{ turn, keep int }
	var chain []cutAt
	for t, keep := turn, -1; ; {
		if t < 0 || t >= len(r.Turns) {
			return dst, Errorf(KindInput, Where{Rollout: r.ID, Turn: At(turn), Field: "prompt"}, "turn %d is needed, there are %d", t, len(r.Turns))
		}
		chain = append(chain, cutAt{t, keep})
		p := &r.Turns[t].Prompt
		base, ok := p.Base.Get()
		switch {
		case p.Keep == 0:
		case p.Keep < 0 || !ok:
			return dst, Errorf(KindInput, Where{Rollout: r.ID, Turn: At(t), Field: "prompt"}, "the prompt keeps %d ids of no turn", p.Keep)
		case base >= t:
			return dst, Errorf(KindInput, Where{Rollout: r.ID, Turn: At(t), Field: "prompt"}, "base is turn %d, expected an earlier one", base)
		}
		if p.Keep == 0 {
			break
		}
		t, keep = base, p.Keep
	}
	start := len(dst)
	for i, c := range slices.Backward(chain) {
		t := &r.Turns[c.turn]
		dst = append(dst, t.Prompt.Add...)
		if i == 0 {
			break
		}
		dst = append(dst, t.Output...)
		if have := len(dst) - start; c.keep > have {
			return dst[:start], Errorf(KindInput, Where{Rollout: r.ID, Turn: At(chain[i-1].turn), Field: "prompt"},
				"keep is %d, turn %d has %d ids", c.keep, c.turn, have)
		}
		dst = dst[:start+c.keep]
	}
	return dst, nil
}

// compactBlock is the distance, in ids, between points at which prompts are compared by
// hash. A smaller one finds a little more and costs more memory.
const compactBlock = 32

// PromptIndex stores each prompt of one rollout against the earlier turn that shares the
// longest prefix, give or take compactBlock ids. Turns must be added in order. It holds the
// full ids of all turns, so drop it once a rollout is read. The zero value is ready.
type PromptIndex struct {
	full   [][]TokenID    // prompt and output of each turn added
	points map[uint64]int // hash of a prefix of k×compactBlock ids → latest turn that has it
}

// Add registers the next turn and returns its prompt as PromptIDs. Both slices
// are copied, not kept.
func (x *PromptIndex) Add(prompt, output []TokenID) PromptIDs {
	if x.points == nil {
		x.points = map[uint64]int{}
	}
	base, keep := -1, 0
	try := func(t int) {
		if n := commonPrefix(prompt, x.full[t]); n > keep {
			base, keep = t, n
		}
	}
	if n := len(x.full); n > 0 && len(prompt) > 0 {
		try(n - 1)
		if keep < len(prompt) {
			if t, ok := x.longest(prompt); ok && t != n-1 {
				try(t)
			}
		}
	}
	full := slices.Concat(prompt, output)
	x.full = append(x.full, full)
	h := uint64(0)
	for i, id := range full {
		if h = mix(h, id); (i+1)%compactBlock == 0 {
			x.points[h] = len(x.full) - 1
		}
	}
	if keep == 0 {
		return PromptIDs{Add: slices.Clone(prompt)}
	}
	out := PromptIDs{Base: At(base), Keep: keep}
	if keep < len(prompt) {
		out.Add = slices.Clone(prompt[keep:])
	}
	return out
}

func (x *PromptIndex) longest(prompt []TokenID) (turn int, ok bool) {
	h := uint64(0)
	for i, id := range prompt {
		if h = mix(h, id); (i+1)%compactBlock == 0 {
			t, here := x.points[h]
			if !here {
				break
			}
			turn, ok = t, true
		}
	}
	return turn, ok
}

func mix(h uint64, id TokenID) uint64 {
	h = (h ^ uint64(uint32(id))) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func commonPrefix(a, b []TokenID) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
