package lineage

import (
	"cmp"
	"slices"
)

// merge is the state of one rollout between the passes. Arrays named by turn are
// indexed by record index; -1 stands for no turn.
type merge struct {
	opts  Options
	trie  *trie
	turns []record

	succ, pred []int32       // neighbours in the row
	join       []joint       // by the later turn: how it holds to pred
	reason     []BreakReason // by head
	below      []int32       // by node: sampled turns whose full ids pass through it
	owner      []int32       // by node: first entry of owners, turns that sampled its edge
	owners     []ownerEntry
}

// joint is a join seen from its later turn.
type joint struct {
	kind JoinKind
	rank uint8 // splice, realign, erase: the order in which repairs are preferred
	at   int   // common prefix of the two turns, in ids of the later prompt
	cost int   // tokens respelled or positions given up
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
	m := &merge{opts: opts, trie: t, turns: turns,
		succ: filled(n, none), pred: filled(n, none), join: make([]joint, n), reason: make([]BreakReason, n),
		below: make([]int32, len(t.nodes)), owner: filled(len(t.nodes), none)}
	// Each node on the way back from an output end holds at least one sampled id,
	// so this is linear in the sampled ids at worst and usually in the turns.
	// Later turns go first: the list then starts with the earliest owner.
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
	for _, x := range t.leavesFirst() {
		if p := t.nodes[x].parent; p != none {
			m.below[p] += m.below[x]
		}
	}
	return m
}

// leavesFirst orders the nodes so that each comes before its parent.
func (t *trie) leavesFirst() []int32 {
	open := make([]int32, len(t.nodes))
	for i := range t.nodes {
		if p := t.nodes[i].parent; p != none {
			open[p]++
		}
	}
	order := make([]int32, 0, len(t.nodes))
	for i, n := range open {
		if n == 0 {
			order = append(order, int32(i))
		}
	}
	for k := 0; k < len(order); k++ {
		if p := t.nodes[order[k]].parent; p != none {
			if open[p]--; open[p] == 0 {
				order = append(order, p)
			}
		}
	}
	return order
}

// attach is pass 1. Turns come by prompt length; each continues the longest row
// end that begins its prompt. All row ends a turn could continue lie on one way
// to the root and whatever can follow the longest can follow the others too, so
// the greedy choice is a minimum chain cover.
func (m *merge) attach() {
	order := make([]int32, 0, len(m.turns))
	for i := range m.turns {
		if m.turns[i].trained() {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.turns[a].pLen, m.turns[b].pLen), cmp.Compare(a, b))
	})
	// ends holds the open row ends of a node in order of arrival. up leads to
	// the nearest ancestor that may hold one. A node no deeper than the prompt
	// at hand gets no further ends (their prompts are shorter, so they came
	// before), hence a way once found empty stays empty and is shortened.
	first := filled(len(m.trie.nodes), none)
	last := filled(len(m.trie.nodes), none)
	next := filled(len(m.turns), none)
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
			m.link(i, j, joint{kind: JoinExact, at: m.turns[i].fLen()})
		}
		if first[r.full] == none {
			first[r.full] = j
		} else {
			next[last[r.full]] = j
		}
		last[r.full] = j
	}
}

func (m *merge) link(i, j int32, jt joint) {
	m.succ[i], m.pred[j], m.join[j] = j, i, jt
}

func (m *merge) unlink(j int32) {
	i := m.pred[j]
	m.succ[i], m.pred[j], m.join[j] = none, none, joint{}
}

func (m *merge) isHead(j int32) bool { return m.pred[j] == none && m.turns[j].trained() }
func (m *merge) isTail(i int32) bool { return m.succ[i] == none && m.turns[i].trained() }
