package lineage

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// The ranks of repairs, in order of preference.
const (
	rankSplice uint8 = iota + 1
	rankRealign
	rankErase
)

// candidate is a possible repair: row end i goes on with row start j.
type candidate struct {
	i, j int32
	jt   joint
}

// repair is pass 2: it joins row ends to row starts, as many as the limits allow
// and, among those, the cheapest. Exact joins are never touched.
func (m *merge) repair() {
	byTail := m.candidates()
	m.match(byTail)
	m.cutLoops()
}

// candidates lists the repairs of each row end, cheapest first, and marks the
// row starts that have none within the limits as BreakBudget.
func (m *merge) candidates() [][]candidate {
	var heads, tails []int32
	for k := range m.turns {
		if k := int32(k); m.isHead(k) {
			heads = append(heads, k)
		}
		if k := int32(k); m.isTail(k) {
			tails = append(tails, k)
		}
	}
	byTail := make([][]candidate, len(m.turns))
	s := newSearch(m)
	for _, j := range heads {
		s.aim(j)
		found := false
		for _, i := range tails {
			if i == j {
				continue
			}
			if jt, ok := s.try(i); ok {
				byTail[i] = append(byTail[i], candidate{i, j, jt})
				found = true
			}
		}
		if s.over && !found {
			m.reason[j] = BreakBudget
		}
	}
	for _, c := range byTail {
		slices.SortFunc(c, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.jt.rank, b.jt.rank), cmp.Compare(a.jt.cost, b.jt.cost),
				cmp.Compare(m.turns[a.j].pLen, m.turns[b.j].pLen), cmp.Compare(a.j, b.j))
		})
	}
	return byTail
}

// search tries all row ends against one row start after another.
type search struct {
	*merge
	head   int32
	over   bool    // a repair was found that exceeds a limit
	onWay  []int32 // by node: the head whose prompt passes through it
	nodes  []int32 // way to the head's prompt, top first
	pieces [][]rollout.TokenID
	// spliced remembers, by row end, the last splice found and the node of the
	// prompt at which the row was used up. Every prompt that passes through that
	// node takes the same splice. When each call re-tokenises the history, all
	// later prompts do.
	spliced  []splicedAt
	tailWay  []int32
	tailIDs  [][]rollout.TokenID
	splices  bool
	realigns bool
}

type splicedAt struct {
	node int32
	jt   joint
}

func newSearch(m *merge) *search {
	return &search{merge: m, onWay: filled(len(m.trie.nodes), none), spliced: filled(len(m.turns), splicedAt{node: none}),
		splices: m.opts.splices(), realigns: m.opts.realigns()}
}

func (s *search) aim(j int32) {
	s.head, s.over = j, false
	s.nodes = s.trie.path(s.nodes[:0], s.turns[j].prompt, 0)
	s.pieces = s.pieces[:0]
	s.onWay[0] = j
	for _, x := range s.nodes {
		s.onWay[x] = j
		s.pieces = append(s.pieces, s.trie.nodes[x].ids)
	}
}

// try looks for the best repair that lets the head follow row end i.
func (s *search) try(i int32) (joint, bool) {
	if c := &s.spliced[i]; c.node != none && s.onWay[c.node] == s.head {
		return c.jt, true
	}
	r := &s.turns[i]
	x, leaves := r.full, none // leaves is the first node off the head's way
	for s.onWay[x] != s.head {
		leaves = x
		if far := s.trie.nodes[x].jump; s.onWay[far] != s.head {
			x = far
		} else {
			x = s.trie.nodes[x].parent
		}
	}
	if leaves == none {
		return joint{}, false
	}
	at := s.trie.nodes[x].depth
	if s.splices && r.fLen()-s.opts.MaxSubTokens <= s.turns[s.head].pLen {
		if jt, ok := s.trySplice(i, leaves, at); ok {
			return jt, true
		}
	}
	if s.realigns {
		return s.tryRealign(r, at)
	}
	return joint{}, false
}

// wayIndex returns the index in nodes of the node that holds id number depth
// (from 1) of the head's prompt; len(nodes) where the prompt is shorter.
func (s *search) wayIndex(depth int) int {
	k, _ := slices.BinarySearchFunc(s.nodes, depth, func(x int32, depth int) int { return cmp.Compare(s.trie.nodes[x].depth, depth) })
	return k
}

func (s *search) trySplice(i, leaves int32, at int) (joint, bool) {
	// at is a node on the head's way, so the pieces behind it begin there.
	k := s.wayIndex(at + 1)
	if k == len(s.nodes) {
		return joint{}, false
	}
	a, b := s.opts.Text(s.trie.nodes[leaves].ids[0]), s.opts.Text(s.pieces[k][0])
	if n := min(len(a), len(b)); a[:n] != b[:n] {
		return joint{}, false
	}
	s.tailWay = s.trie.path(s.tailWay[:0], s.turns[i].full, at)
	s.tailIDs = s.tailIDs[:0]
	for _, x := range s.tailWay {
		s.tailIDs = append(s.tailIDs, s.trie.nodes[x].ids)
	}
	al := align(idCursor{pieces: s.tailIDs}, idCursor{pieces: s.pieces[k:]}, 0, s.opts.Text, s.opts.MaxSubTokens)
	s.over = s.over || al.over
	if !al.ok {
		return joint{}, false
	}
	jt := joint{kind: JoinSplice, rank: rankSplice, at: at, cost: al.size}
	s.spliced[i] = splicedAt{s.nodes[s.wayIndex(at+al.engine)], jt}
	return jt, true
}

func (s *search) tryRealign(r *record, at int) (joint, bool) {
	lost := r.fLen() - at
	jt := joint{kind: JoinRealign, rank: rankRealign, at: at, cost: lost}
	if at <= r.pLen {
		// A row that may hold respelled text is cut at the response's own start
		// only: other positions have no counterpart inside a respelled run.
		if !s.opts.AllowErase || s.splices && at < r.pLen {
			return joint{}, false
		}
		jt.rank = rankErase
	}
	share := float64(min(lost, len(r.output))) / float64(len(r.output))
	if lost > s.opts.MaxDropTokens || share > s.opts.MaxDropFrac {
		s.over = true
		return joint{}, false
	}
	return jt, true
}

// match joins row ends in order of their cheapest candidate, each along an
// augmenting path. That gives the most joins, and those of the least cost as far
// as a join costs the same whichever start it leads to, which it nearly always does.
func (m *merge) match(byTail [][]candidate) {
	var order []int32
	for i, c := range byTail {
		if len(c) > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := byTail[a][0].jt, byTail[b][0].jt
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.cost, y.cost),
			cmp.Compare(m.turns[a].pLen, m.turns[b].pLen), cmp.Compare(a, b))
	})
	taken := filled(len(m.turns), candidate{i: none}) // by head
	seen := filled(len(m.turns), none)                // by head: the search that met it
	next := make([]int, len(m.turns))                 // by tail: its next candidate to try
	var stack []int32                                 // tails of the augmenting path
	for _, root := range order {
		stack = append(stack[:0], root)
		next[root] = 0
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			if next[i] == len(byTail[i]) {
				stack = stack[:len(stack)-1]
				continue
			}
			c := byTail[i][next[i]]
			next[i]++
			if seen[c.j] == root {
				continue
			}
			seen[c.j] = root
			if owner := taken[c.j].i; owner != none {
				stack = append(stack, owner)
				next[owner] = 0
				continue
			}
			// A free start: each tail on the path takes the candidate it tried last.
			for k := len(stack) - 1; k >= 0; k-- {
				won := byTail[stack[k]][next[stack[k]]-1]
				taken[won.j] = won
			}
			break
		}
	}
	for j, c := range taken {
		if c.i != none {
			m.link(c.i, int32(j), c.jt)
		}
	}
}

// cutLoops turns the worst repair of each closed loop back into a fork. Only
// erased retries, which can point at each other, make loops.
func (m *merge) cutLoops() {
	state := make([]bool, len(m.turns))
	for j := range m.turns {
		if m.isHead(int32(j)) {
			for x := int32(j); x != none; x = m.succ[x] {
				state[x] = true
			}
		}
	}
	for j := range m.turns {
		if state[j] || !m.turns[j].trained() {
			continue
		}
		worst := none
		for x := int32(j); !state[x]; x = m.succ[x] {
			state[x] = true
			if worst == none || worse(m.join[x], m.join[worst]) {
				worst = x
			}
		}
		m.unlink(worst)
	}
}

func worse(a, b joint) bool {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.cost, b.cost)) > 0
}
