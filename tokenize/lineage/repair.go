package lineage

import (
	"cmp"
	"slices"
)

// repair is pass 2: it lets rows go on through divergences, as far as the limits
// allow, so that the fewest rows remain and, among those, the fewest tokens are
// dropped and then respelled. Where that takes it, exact joins are paired anew.
func (m *merge) repair() {
	var tails []int32
	for _, i := range m.byPromptLength() {
		if m.isTail(i) {
			tails = append(tails, i)
		}
	}
	if len(tails) < 2 {
		return
	}
	r := newRepairs(m)
	repairable := false
	for _, i := range tails {
		repairable = len(r.of(i)) > 0 || repairable
	}
	r.explain(tails)
	if repairable {
		c := newMatching(r)
		for _, i := range tails {
			c.add(i)
		}
		for j := range m.turns {
			if m.pred[j] != none {
				m.unlink(int32(j))
			}
		}
		m.pair(c.held)
	}
	if m.opts.AllowErase && m.opts.realigns() {
		r.erase()
	}
}

// repairs knows from where rows can go on behind each turn.
type repairs struct {
	*merge
	starts    []int32    // by node: trained prompts that end there or below
	spellings *spellings // nil where the policy does not splice
	known     []bool     // by turn
	choices   [][]landing
	// Of the turns looked at so far, by turn: nodes below which a repair exists
	// that exceeds a limit.
	beyond  [][]int32
	dropped int // price of a dropped token in respelled ones
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
		r.dropped += n * min(m.opts.MaxSubTokens, longest) // more than all splices can respell
	}
	return r
}

// price orders the joins of a rollout by their sum.
func (r *repairs) price(l landing) int {
	if l.jt.kind == JoinRealign {
		return l.jt.cost * r.dropped
	}
	return l.jt.cost
}

// of returns the landings of turn i that lead to prompts, cheapest first, the
// exact one included.
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

// truncated finds where the row can go on with the whole response, or with its
// first tokens. A node without more prompts below it than the last has nothing
// to offer at its price.
func (r *repairs) truncated(i int32) {
	t := &r.turns[i]
	offered, beyond := int32(0), none
	for x := t.full; x != t.prompt; x = r.trie.nodes[x].parent {
		at := r.trie.nodes[x].depth
		l := landing{x, joint{kind: JoinRealign, at: at, cost: t.fLen() - at}}
		if x == t.full {
			l.jt.kind = JoinExact
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

// affords says whether a realigned join may give up that many of n sampled tokens.
func (o *Options) affords(lost, n int) bool {
	return lost <= o.MaxDropTokens && float64(lost)/float64(n) <= o.MaxDropFrac
}

// respelled finds where the row can go on in another spelling.
func (r *repairs) respelled(i int32) {
	t := &r.turns[i]
	for _, x := range r.spellings.of(t.full) {
		if r.starts[x] == 0 || r.pre.holds(x, t.full) || r.pre.holds(t.full, x) {
			continue
		}
		at := r.trie.meet(t.full, x, &r.pre)
		a := align(r.trie.cursor(t.full, at), r.trie.cursor(x, at), 0, r.opts.Text, r.opts.MaxSubTokens)
		switch {
		case a.ok:
			r.choices[i] = append(r.choices[i], landing{x, joint{JoinSplice, at, a.size}})
		case a.over:
			r.beyond[i] = append(r.beyond[i], x)
		}
	}
}

// explain finds the row starts that a repair of a row end could reach, but none
// within the limits.
func (r *repairs) explain(tails []int32) {
	const within, beyond = 1, 2
	mark := make([]uint8, len(r.trie.nodes))
	found := false
	for _, i := range tails {
		for _, l := range r.of(i) {
			mark[l.node] |= within
		}
		for _, x := range r.beyond[i] {
			mark[x] |= beyond
			found = true
		}
	}
	if !found {
		return
	}
	for _, x := range r.pre.nodes[1:] {
		mark[x] |= mark[r.trie.nodes[x].parent]
	}
	for j := range r.turns {
		if r.isHead(int32(j)) && mark[r.turns[j].prompt] == beyond {
			r.reason[j] = BreakBudget
		}
	}
}

// erase joins what row ends and starts are left by giving up whole responses,
// the cheapest first. Retries could follow each other in a circle, so this is no
// matching: a row end never takes the start of its own row.
func (r *repairs) erase() {
	type erasure struct {
		i    int32
		land landing
	}
	var found []erasure
	var heads []int32
	headOf, endOf := filled(len(r.turns), none), filled(len(r.turns), none) // by row end, by row start
	for j := range r.turns {
		if !r.isHead(int32(j)) {
			continue
		}
		i := int32(j)
		for r.succ[i] != none {
			i = r.succ[i]
		}
		heads = append(heads, int32(j))
		headOf[i], endOf[j] = int32(j), i
		for x := r.turns[i].prompt; x != none; x = r.trie.nodes[x].parent {
			at := r.trie.nodes[x].depth
			lost := r.turns[i].fLen() - at
			// A row that may hold respelled text is cut at the response's own start
			// only: other positions have no counterpart inside a respelled run.
			if !r.opts.affords(lost, lost) || r.opts.splices() && x != r.turns[i].prompt {
				break
			}
			found = append(found, erasure{i, landing{x, joint{JoinRealign, at, lost}}})
		}
	}
	slices.SortFunc(found, func(a, b erasure) int {
		return cmp.Or(cmp.Compare(a.land.jt.cost, b.land.jt.cost), cmp.Compare(r.turns[a.i].pLen, r.turns[b.i].pLen), cmp.Compare(a.i, b.i))
	})
	open := newOpenStarts(r.merge, heads)
	for _, e := range found {
		if r.succ[e.i] != none {
			continue
		}
		k, ok := open.first(e.land.node)
		if ok && open.turns[k] == headOf[e.i] {
			k, ok = open.after(k, e.land.node)
		}
		if !ok {
			continue
		}
		j := open.turns[k]
		open.take(k)
		r.link(e.i, j, e.land.jt)
		headOf[endOf[j]], endOf[headOf[e.i]] = headOf[e.i], endOf[j]
	}
}

// openStarts are row starts that nothing leads to yet.
type openStarts struct {
	*merge
	turns []int32 // in the order of their prompts in the tree
	next  []int   // by index in turns: itself where open, else one behind it that may be
}

func newOpenStarts(m *merge, turns []int32) *openStarts {
	o := &openStarts{merge: m, turns: slices.Clone(turns), next: make([]int, len(turns)+1)}
	slices.SortStableFunc(o.turns, func(a, b int32) int { return cmp.Compare(o.place(a), o.place(b)) })
	for k := range o.next {
		o.next[k] = k
	}
	return o
}

func (o *openStarts) place(j int32) int32 { return o.pre.in[o.merge.turns[j].prompt] }

// first returns the index of an open start whose prompt passes node x.
func (o *openStarts) first(x int32) (int, bool) {
	k, _ := slices.BinarySearchFunc(o.turns, o.pre.in[x], func(j, at int32) int { return cmp.Compare(o.place(j), at) })
	return o.from(k, x)
}

// after returns the next one.
func (o *openStarts) after(k int, x int32) (int, bool) { return o.from(k+1, x) }

func (o *openStarts) from(k int, x int32) (int, bool) {
	for o.next[k] != k {
		o.next[k] = o.next[o.next[k]]
		k = o.next[k]
	}
	return k, k < len(o.turns) && o.place(o.turns[k]) <= o.pre.last[x]
}

func (o *openStarts) take(k int) { o.next[k] = k + 1 }
