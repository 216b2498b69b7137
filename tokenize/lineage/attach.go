package lineage

import (
	"cmp"
	"slices"
)

// merge is the state of one rollout between the passes. Arrays by turn are indexed by record index;
// -1 means no turn.
type merge struct {
	opts  Options
	trie  *trie
	turns []record
	pre   preorder

	succ, pred []int32  // neighbouring turns in the row
	join       []joint  // by the later turn: its join to pred
	reason     []string // by head: why the row starts
	below      []int32  // by node: turns with output whose full ids pass through it
	owner      []int32  // by node: first entry in owners, a list of the turns that sampled its edge
	owners     []ownerEntry
}

// joint is a join, stored with its later turn.
type joint struct {
	kind string
	at   int // length of the common prefix of the two turns
	cost int // tokens respelled or positions given up
}

type ownerEntry struct{ turn, next int32 }

func filled[T any](n int, v T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = v
	}
	return s
}

func newMerge(opts Options, t *trie, turns []record) *merge {
	n := len(turns)
	m := &merge{opts: opts, trie: t, turns: turns, pre: t.preorder(),
		succ: filled(n, none), pred: filled(n, none), join: filled(n, joint{kind: joinExact}), reason: filled(n, breakRoot),
		below: make([]int32, len(t.nodes)), owner: filled(len(t.nodes), none)}
	// Each node on the path back from an output end holds at least one sampled id, so this is
	// linear in the sampled ids at worst and usually in the turns. Later turns go first, so that
	// the list starts with the earliest owner.
	for i := n - 1; i >= 0; i-- {
		r := &turns[i]
		if r.empty() {
			continue
		}
		m.below[r.full]++
		for x := r.full; x != r.prompt; x = t.nodes[x].parent {
			m.owners = append(m.owners, ownerEntry{int32(i), m.owner[x]})
			m.owner[x] = int32(len(m.owners) - 1)
		}
	}
	m.sumUp(m.below)
	return m
}

// sumUp adds to each node's count those of the nodes below it.
func (m *merge) sumUp(count []int32) {
	for _, x := range slices.Backward(m.pre.nodes) {
		if p := m.trie.nodes[x].parent; p != none {
			count[p] += count[x]
		}
	}
}

// landing is a place from which a row can continue after a turn: any prompt that passes node can
// follow.
type landing struct {
	node int32
	jt   joint
}

// end returns the landing of an exact join.
func (r *record) end() landing { return landing{r.full, joint{kind: joinExact, at: r.fLen()}} }

// attach is pass 1: a row can continue where the full ids of its last turn end.
func (m *merge) attach() {
	ends := make([]landing, len(m.turns))
	for i := range m.turns {
		ends[i] = landing{node: none}
		if m.turns[i].trained() {
			ends[i] = m.turns[i].end()
		}
	}
	m.pair(m.byPromptLength(), ends)
}

// pair joins turns to prompts that pass their landings (at, by turn; node none if the row is to
// end): in the given order each prompt takes the deepest landing left on its path. All landings
// that a prompt could take lie on that path, and a later prompt that can take the deepest can take
// the others too, so the greedy choice makes as many joins as possible: for exact landings, a
// minimum chain cover. A prompt gets none only if earlier prompts took all of them.
func (m *merge) pair(order []int32, at []landing) {
	first := filled(len(m.trie.nodes), none)
	next := filled(len(m.turns), none)
	for _, i := range slices.Backward(order) {
		if x := at[i].node; x != none {
			next[i], first[x] = first[x], i
		}
	}
	// up leads to the nearest ancestor that may hold a landing. A path found empty stays empty and
	// is shortened.
	up := make([]int32, len(m.trie.nodes))
	for i := range up {
		up[i] = m.trie.nodes[i].parent
	}
	for _, j := range order {
		r := &m.turns[j]
		found := r.prompt
		for found != none && first[found] == none {
			found = up[found]
		}
		for x := r.prompt; x != found; {
			x, up[x] = up[x], found
		}
		if found != none {
			i := first[found]
			first[found] = next[i]
			m.link(i, j, at[i].jt)
		}
	}
}

// byPromptLength returns the trained turns, shortest prompt first.
func (m *merge) byPromptLength() []int32 {
	order := make([]int32, 0, len(m.turns))
	for i := range m.turns {
		if m.turns[i].trained() {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.turns[a].pLen, m.turns[b].pLen), cmp.Compare(a, b))
	})
	return order
}

// heads returns the row starts, by record index.
func (m *merge) heads() (heads []int32) {
	for j := range m.turns {
		if m.isHead(int32(j)) {
			heads = append(heads, int32(j))
		}
	}
	return heads
}

func (m *merge) link(i, j int32, jt joint) {
	m.succ[i], m.pred[j], m.join[j] = j, i, jt
}

func (m *merge) unlink(j int32) {
	i := m.pred[j]
	m.succ[i], m.pred[j], m.join[j] = none, none, joint{kind: joinExact}
}

func (m *merge) isHead(j int32) bool { return m.pred[j] == none && m.turns[j].trained() }
