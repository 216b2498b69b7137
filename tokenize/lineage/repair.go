package lineage

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// repair is pass 2: it lets rows continue through divergences, as far as the limits allow, so that
// the fewest rows remain and, among those, the fewest tokens are dropped and then respelled. Exact
// joins are paired anew if necessary. Along every join the prompt's text grows or, if a response
// has no text, the ids after it do, so that rows cannot form cycles.
func (m *merge) repair() {
	var heads, joined, tails []int32
	for _, k := range m.byPromptLength() {
		if m.isHead(k) {
			heads = append(heads, k)
		} else {
			joined = append(joined, k)
		}
		if m.succ[k] == none {
			tails = append(tails, k)
		}
	}
	if len(tails) < 2 {
		return
	}
	r := newRepairs(m)
	r.explain(heads, tails)
	tails = slices.DeleteFunc(tails, func(i int32) bool { return len(r.of(i)) == 0 })
	if len(tails) > 0 {
		// Any order is correct. In this one few turns have to move for later ones.
		slices.SortStableFunc(tails, func(a, b int32) int {
			return cmp.Or(cmp.Compare(r.price(r.of(a)[0]), r.price(r.of(b)[0])), cmp.Compare(m.turns[b].pLen, m.turns[a].pLen))
		})
		c := newMatching(r, heads)
		for _, i := range tails {
			c.add(i)
		}
		for _, j := range joined {
			m.unlink(j)
		}
		m.pair(append(joined, heads...), c.held) // no new row starts
	}
	if m.opts.AllowErase && m.opts.realigns() {
		r.erase()
	}
}

// repairs finds the places from which rows can continue after each turn.
type repairs struct {
	*merge
	starts    []int32    // by node: trained prompts that end there or below
	spellings *spellings // nil if the policy does not splice
	known     []bool     // by turn
	choices   [][]landing
	// By turn, for turns whose choices are known: nodes below which there is a repair that exceeds
	// a limit.
	beyond  [][]int32
	dropped int // price of a dropped token, in respelled tokens

	row, engine [][]rollout.TokenID // scratch
}

func newRepairs(m *merge) *repairs {
	n := len(m.turns)
	r := &repairs{merge: m, starts: make([]int32, len(m.trie.nodes)), known: make([]bool, n), choices: make([][]landing, n), beyond: make([][]int32, n), dropped: 1}
	for i := range m.turns {
		if m.turns[i].trained() {
			r.starts[m.turns[i].prompt]++
		}
	}
	m.sumUp(r.starts)
	if m.opts.splices() {
		r.spellings = newSpellings(m)
		longest := 0
		for i := range m.turns {
			longest = max(longest, m.turns[i].fLen())
		}
		r.dropped += n * min(m.opts.MaxSubTokens, longest) // more than all splices together can respell
	}
	return r
}

// price returns the price of a landing; joins of a rollout are compared by the sum of their prices.
func (r *repairs) price(l landing) int {
	if l.jt.kind == joinRealign {
		return l.jt.cost * r.dropped
	}
	return l.jt.cost
}

// of returns the landings of turn i that lead to prompts, cheapest first, the exact one included.
func (r *repairs) of(i int32) []landing {
	if !r.known[i] {
		r.known[i] = true
		r.truncated(i)
		if r.spellings != nil {
			r.respelled(i)
		}
		slices.SortStableFunc(r.choices[i], func(a, b landing) int { return cmp.Compare(r.price(a), r.price(b)) })
	}
	return r.choices[i]
}

// truncated finds where the row can continue with the whole response, or with its first tokens. A
// node with no more prompts below it than a cheaper one is left out.
func (r *repairs) truncated(i int32) {
	t := &r.turns[i]
	offered, beyond := int32(0), none
	for x := t.full; x != t.prompt; x = r.trie.nodes[x].parent {
		at := r.trie.nodes[x].depth
		l := landing{x, joint{kind: joinRealign, at: at, cost: t.fLen() - at}}
		if x == t.full {
			l.jt.kind = joinExact
		}
		switch {
		case x != t.full && !r.opts.realigns():
			return
		case !r.opts.affords(l.jt.cost, len(t.output)):
			beyond = x
		case r.starts[x] > offered:
			offered = r.starts[x]
			r.choices[i] = append(r.choices[i], l)
		}
	}
	if beyond != none {
		r.beyond[i] = append(r.beyond[i], beyond)
	}
}

// affords reports whether a realigned join may give up lost of n sampled tokens.
func (o *Options) affords(lost, n int) bool {
	return lost <= o.MaxDropTokens && float64(lost)/float64(n) <= o.MaxDropFrac
}

// respelled finds where the row can continue in another spelling.
func (r *repairs) respelled(i int32) {
	t := &r.turns[i]
	for _, x := range r.spellings.of(t.full) {
		if r.starts[x] == 0 || r.pre.holds(x, t.full) || r.pre.holds(t.full, x) {
			continue
		}
		at := r.trie.meet(t.full, x, &r.pre)
		r.row, r.engine = r.trie.pieces(r.row[:0], t.full, at), r.trie.pieces(r.engine[:0], x, at)
		a := align(idCursor{pieces: r.row}, idCursor{pieces: r.engine}, 0, r.opts.Text, r.opts.MaxSubTokens)
		switch {
		case a.ok:
			r.choices[i] = append(r.choices[i], landing{x, joint{joinSplice, at, a.size}})
		case a.over:
			r.beyond[i] = append(r.beyond[i], x)
		}
	}
}

// explain marks the row starts that a repair of a row end could reach, but none within the limits.
func (r *repairs) explain(heads, tails []int32) {
	const within, beyond = 1, 2
	mark := make([]uint8, len(r.trie.nodes))
	for _, i := range tails {
		for _, l := range r.of(i) {
			mark[l.node] |= within
		}
		for _, x := range r.beyond[i] {
			mark[x] |= beyond
		}
	}
	for _, x := range r.pre.nodes[1:] {
		mark[x] |= mark[r.trie.nodes[x].parent]
	}
	for _, j := range heads {
		if mark[r.turns[j].prompt] == beyond {
			r.reason[j] = breakBudget
		}
	}
}
