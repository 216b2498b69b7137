package lineage

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/rollout"
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

// shared returns the deepest node on the way to turn j's prompt that some other
// turn passes through as well: their longest common prefix.
func (m *merge) shared(j int32) int32 {
	x := m.turns[j].prompt
	for x != 0 && m.below[x] <= 1 {
		x = m.trie.nodes[x].parent
	}
	return x
}

// explain sets the reason of each row start, before repairs.
func (m *merge) explain() {
	var heads []int32
	for j := range m.turns {
		if m.isHead(int32(j)) {
			heads = append(heads, int32(j))
		}
	}
	if len(heads) < 2 {
		return
	}
	// sampledOn is, by node, the turn whose output goes on below it, a row end
	// where there is one: what a prompt that leaves the tree there diverges from.
	sampledOn := filled(len(m.trie.nodes), none)
	exact := make([]bool, len(m.trie.nodes)) // a turn's full ids end here
	for i := range m.turns {
		r := &m.turns[i]
		if r.empty() {
			continue
		}
		exact[r.full] = true
		for x := r.full; x != r.prompt; x = m.trie.nodes[x].parent {
			p := m.trie.nodes[x].parent
			if old := sampledOn[p]; old == none || m.succ[old] != none && m.succ[i] == none {
				sampledOn[p] = int32(i)
			}
		}
	}
	var quotes *quoteIndex
	for _, j := range heads {
		x := m.shared(j)
		if k := m.divergedFrom(sampledOn, x, j); k != none {
			m.reason[j] = BreakDriftLast
			if m.succ[k] != none {
				m.reason[j] = BreakDriftEarlier
			}
			continue
		}
		if quotes == nil {
			quotes = newQuoteIndex(m.turns)
		}
		if quotes.repeats(m, j, m.trie.nodes[x].depth) {
			m.reason[j] = BreakRewrite
			continue
		}
		for y := x; y != none; y = m.trie.nodes[y].parent {
			if exact[y] {
				m.reason[j] = BreakSibling
				break
			}
		}
	}
}

// divergedFrom returns the turn inside whose output prompt j leaves the tree at
// node x, or none when it leaves in context or is used up there.
func (m *merge) divergedFrom(sampledOn []int32, x, j int32) int32 {
	if m.trie.nodes[x].depth == m.turns[j].pLen {
		return none
	}
	return sampledOn[x]
}

// refuse reports the first divergence inside a sampled response, by record index.
func (m *merge) refuse() error {
	for j := range m.turns {
		if !m.isHead(int32(j)) || m.reason[j] != BreakDriftLast && m.reason[j] != BreakDriftEarlier {
			continue
		}
		x := m.shared(int32(j))
		at := m.trie.nodes[x].depth
		k := none
		for i := range m.turns {
			r := &m.turns[i]
			if i != j && !r.empty() && r.pLen <= at && at < r.fLen() && m.trie.locate(r.full, at).node == x {
				k = int32(i)
				break
			}
		}
		found := m.trie.idAt(m.turns[j].prompt, at)
		return rollout.Errorf(rollout.KindDrift, rollout.Where{Turn: rollout.At(j), Token: rollout.At(at)},
			"prompt has id %d where turn %d sampled id %d", found, k, m.turns[k].output[at-m.turns[k].pLen]).
			WithFix("record the engine's own ids, or choose another drift policy")
	}
	return nil
}

// quoteIndex finds in a prompt what turns sampled, wherever it stands.
type quoteIndex struct {
	ends  map[[quoteKey]rollout.TokenID][]int32
	turns []record
}

const (
	quoteKey = 3  // ids looked up
	quoteMin = 16 // ids that must agree, or the whole output without its stop token
)

func newQuoteIndex(turns []record) *quoteIndex {
	q := &quoteIndex{ends: make(map[[quoteKey]rollout.TokenID][]int32), turns: turns}
	for i := range turns {
		if out := quoted(&turns[i]); len(out) >= quoteKey {
			key := [quoteKey]rollout.TokenID(out[len(out)-quoteKey:])
			// A few outputs with the same end are enough to look at; more would make
			// an adversarial rollout quadratic.
			if len(q.ends[key]) < 4 {
				q.ends[key] = append(q.ends[key], int32(i))
			}
		}
	}
	return q
}

// quoted is an output without its last id, which histories may lack.
func quoted(r *record) []rollout.TokenID {
	return r.output[:max(0, len(r.output)-1)]
}

// repeats says whether prompt j, from offset from on, holds another turn's output.
func (q *quoteIndex) repeats(m *merge, j int32, from int) bool {
	r := &m.turns[j]
	ids := m.trie.appendIDs(make([]rollout.TokenID, 0, r.pLen-from), r.prompt, from)
	for end := quoteKey; end <= len(ids); end++ {
		for _, i := range q.ends[[quoteKey]rollout.TokenID(ids[end-quoteKey:end])] {
			out := quoted(&q.turns[i])
			need := min(quoteMin, len(out))
			if i != j && need <= end && slices.Equal(ids[end-need:end], out[len(out)-need:]) {
				return true
			}
		}
	}
	return false
}

// appendIDs appends the ids from offset from to node at.
func (t *trie) appendIDs(dst []rollout.TokenID, at int32, from int) []rollout.TokenID {
	for _, x := range t.path(nil, at, from) {
		n := &t.nodes[x]
		dst = append(dst, n.ids[max(0, from-(n.depth-len(n.ids))):]...)
	}
	return dst
}
