package lineage

import (
	"math"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// branchPoint returns the deepest node at which another turn branches off the path to turn j's
// prompt, or ends on it, and the next node on that path. It ends the longest prefix shared with a
// turn whose full ids do not begin with the prompt. Both are none if there is no such turn.
func (m *merge) branchPoint(j int32) (at, next int32) {
	next = m.turns[j].prompt
	for next != 0 {
		at = m.trie.nodes[next].parent
		if m.below[at] > m.below[next] {
			return at, next
		}
		next = at
	}
	return none, none
}

// best holds the best value seen below a node, and the best below another child of that node.
type best[V any] [2]struct {
	value V
	child int32
}

func unseen[V any](value V) best[V] { return best[V]{{value, none}, {value, none}} }

func (b *best[V]) add(value V, child int32, better func(a, b V) bool) {
	switch {
	case b[0].child == child:
		if better(value, b[0].value) {
			b[0].value = value
		}
	case better(value, b[0].value):
		b[1] = b[0]
		b[0].value, b[0].child = value, child
	case better(value, b[1].value):
		b[1].value, b[1].child = value, child
	}
}

// other returns the best value below a child other than next.
func (b *best[V]) other(next int32) V {
	if b[0].child != next {
		return b[0].value
	}
	return b[1].value
}

// branches returns, by node, a turn whose output continues below it, preferably a row end: the turn
// from which a prompt that leaves the output at that node diverges, whichever child the prompt
// takes.
func (m *merge) branches() []best[int32] {
	out := filled(len(m.trie.nodes), unseen(none))
	better := func(a, b int32) bool { return b == none || m.succ[b] != none && m.succ[a] == none }
	for i := range m.turns {
		r := &m.turns[i]
		for x := r.full; x != r.prompt; x = m.trie.nodes[x].parent {
			out[m.trie.nodes[x].parent].add(int32(i), x, better)
		}
	}
	return out
}

// generationPrompt is the most ids that a template puts between the last message and the response
// (three to five in known templates, of which the first begins any message). A prompt that diverges
// from another that close to its end shares all its messages and continues differently: the history
// after them was rewritten.
const generationPrompt = 4

// promptsBelow returns, by node, the length of the shortest prompt that ends below it.
func (m *merge) promptsBelow() []best[int] {
	const far = math.MaxInt
	own := filled(len(m.trie.nodes), far) // shortest prompt that ends at or below the node
	out := filled(len(m.trie.nodes), unseen(far))
	for i := range m.turns {
		if r := &m.turns[i]; !r.empty() {
			own[r.prompt] = r.pLen
		}
	}
	for _, x := range slices.Backward(m.pre.nodes) {
		p := m.trie.nodes[x].parent
		if p == none || own[x] == far {
			continue
		}
		own[p] = min(own[p], own[x])
		out[p].add(own[x], x, func(a, b int) bool { return a < b })
	}
	return out
}

// explain sets the reason of each row start, before repairs.
func (m *merge) explain() {
	heads := m.heads()
	if len(heads) < 2 {
		return
	}
	outputs := m.branches()
	ends := make([]bool, len(m.trie.nodes)) // a turn's full ids end here
	for i := range m.turns {
		if !m.turns[i].empty() {
			ends[m.turns[i].full] = true
		}
	}
	context := m.contextBreaks(ends)
	var quotes *quoteIndex
	for _, j := range heads {
		at, next := m.branchPoint(j)
		if at == none {
			continue
		}
		if k := outputs[at].other(next); k != none {
			m.reason[j] = breakDriftLast
			if m.succ[k] != none {
				m.reason[j] = breakDriftEarlier
			}
			continue
		}
		if quotes == nil {
			quotes = newQuoteIndex(m)
		}
		switch {
		case quotes.repeats(j, at):
			m.reason[j] = breakRewrite
		case ends[m.turns[j].prompt]:
			m.reason[j] = breakSibling
		default:
			m.reason[j] = context[next]
		}
	}
}

// contextBreaks returns, by node, why a prompt through that node starts a row if the node's parent
// is the deepest place that it shares with other turns. The nearest place on the path from there to
// the root that gives a reason decides.
func (m *merge) contextBreaks(ends []bool) []string {
	prompts := m.promptsBelow()
	out := filled(len(m.trie.nodes), breakRoot)
	for _, x := range m.pre.nodes[1:] {
		switch p := m.trie.nodes[x].parent; {
		case prompts[p].other(x)-m.trie.nodes[p].depth <= generationPrompt:
			out[x] = breakRewrite
		case ends[p]:
			out[x] = breakSibling
		default:
			out[x] = out[p]
		}
	}
	return out
}

// refuse returns an error for the first divergence inside a sampled response, by record index.
func (m *merge) refuse() error {
	for _, j := range m.heads() {
		if m.reason[j] != breakDriftLast && m.reason[j] != breakDriftEarlier {
			continue
		}
		node, next := m.branchPoint(j)
		k := m.branches()[node].other(next)
		at := m.trie.nodes[node].depth
		found := m.trie.appendFirst(nil, m.turns[j].prompt, at, 1)[0]
		return rollout.Errorf(rollout.KindDrift, rollout.Where{Turn: rollout.At(int(j)), Token: rollout.At(at)},
			"prompt has id %d where turn %d sampled id %d", found, k, m.turns[k].output[at-m.turns[k].pLen]).
			WithFix("record the engine's own ids, or choose another drift policy")
	}
	return nil
}

// quoteIndex finds outputs of turns anywhere in a prompt.
type quoteIndex struct {
	*merge
	ends   map[quoteEnd][2]int32 // the first two turns, by the end of their outputs
	lens   []int                 // of the endings, each length once
	filter [1 << 10]uint64       // by the last ids of endings: which positions to look up
	seen   map[[2]int32]int32    // by prompt node and the node where it diverges: the turn found
	ids    []rollout.TokenID     // scratch
}

const (
	quoteKey = 3  // ids that the filter holds; shorter outputs are not searched
	quoteMin = 16 // ids that must agree, or the whole output without its stop token
)

// quoteEnd is the end of an output, padded at the start if the output is shorter.
type quoteEnd [quoteMin]rollout.TokenID

func newQuoteEnd(ids []rollout.TokenID) (e quoteEnd) {
	for k := range quoteMin - len(ids) {
		e[k] = -1
	}
	copy(e[quoteMin-len(ids):], ids)
	return e
}

func newQuoteIndex(m *merge) *quoteIndex {
	q := &quoteIndex{merge: m, ends: make(map[quoteEnd][2]int32), seen: make(map[[2]int32]int32)}
	for i := range m.turns {
		out := quoted(&m.turns[i])
		n := min(quoteMin, len(out))
		if n < quoteKey {
			continue
		}
		end := newQuoteEnd(out[len(out)-n:])
		switch turns, ok := q.ends[end]; {
		case !ok:
			q.ends[end] = [2]int32{int32(i), none}
		case turns[1] == none:
			q.ends[end] = [2]int32{turns[0], int32(i)}
		}
		if !slices.Contains(q.lens, n) {
			q.lens = append(q.lens, n)
		}
		word, bit := filterBit([quoteKey]rollout.TokenID(out[len(out)-quoteKey:]))
		q.filter[word] |= bit
	}
	return q
}

// quoted returns an output without its last id, which histories may lack.
func quoted(r *record) []rollout.TokenID {
	return r.output[:max(0, len(r.output)-1)]
}

func filterBit(key [quoteKey]rollout.TokenID) (word int, bit uint64) {
	h := uint32(key[0])*0x9e3779b1 ^ uint32(key[1])*0x85ebca77 ^ uint32(key[2])*0xc2b2ae3d
	h ^= h >> 15
	return int(h >> 6 & (1<<10 - 1)), 1 << (h & 63)
}

// repeats reports whether prompt j, after node at, holds another turn's output. Results are cached,
// since retries have the same prompt.
func (q *quoteIndex) repeats(j, at int32) bool {
	key := [2]int32{q.turns[j].prompt, at}
	found, ok := q.seen[key]
	if !ok || found == j {
		found = q.find(j, q.trie.nodes[at].depth)
		q.seen[key] = found
	}
	return found != none
}

// find returns a turn other than j whose output occurs in prompt j after offset from, or none.
func (q *quoteIndex) find(j int32, from int) int32 {
	q.ids = q.trie.appendIDs(q.ids[:0], q.turns[j].prompt, from)
	for end := quoteKey; end <= len(q.ids); end++ {
		key := [quoteKey]rollout.TokenID(q.ids[end-quoteKey : end])
		if word, bit := filterBit(key); q.filter[word]&bit == 0 {
			continue
		}
		for _, n := range q.lens {
			if n > end {
				continue
			}
			turns, ok := q.ends[newQuoteEnd(q.ids[end-n:end])]
			switch {
			case ok && turns[0] != j:
				return turns[0]
			case ok && turns[1] != none:
				return turns[1]
			}
		}
	}
	return none
}
