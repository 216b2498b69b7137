package lineage

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

const none = int32(-1)

// trie is a radix tree over the full ids of all turns. Edges are views of the input. A node is one
// distinct prefix; every prompt end and every output end is a node, so "the full ids of i are a
// prefix of the prompt of j" means that node full(i) is on the path from the root to node
// prompt(j).
type trie struct {
	nodes []node
	kids  map[uint64]int32
}

type node struct {
	ids    []rollout.TokenID // edge from the parent, at least one id except at the root
	parent int32
	jump   int32 // a distant ancestor for most nodes: finds a depth in few hops
	level  int32 // hops from the root when the node was made; used for jump only
	depth  int   // number of ids from the root
}

// position is a place on the edge into node, depth ids from the root.
type position struct {
	node  int32
	depth int
}

func newTrie() *trie {
	return &trie{nodes: []node{{parent: none}}, kids: make(map[uint64]int32)}
}

func edgeKey(parent int32, first rollout.TokenID) uint64 {
	return uint64(uint32(parent))<<32 | uint64(uint32(first))
}

func (t *trie) add(parent int32, ids []rollout.TokenID) int32 {
	p := &t.nodes[parent]
	j := &t.nodes[p.jump]
	n := node{ids: ids, parent: parent, jump: parent, level: p.level + 1, depth: p.depth + len(ids)}
	// Skew-binary jumps: two neighbouring jumps of equal length become one of twice the length.
	// Later splits make them uneven, but never wrong.
	if p.level-j.level == j.level-t.nodes[j.jump].level {
		n.jump = j.jump
	}
	at := int32(len(t.nodes))
	t.nodes = append(t.nodes, n)
	t.kids[edgeKey(parent, ids[0])] = at
	return at
}

// split makes p a node. The node below keeps its index.
func (t *trie) split(p position) int32 {
	low := t.nodes[p.node]
	if p.depth == low.depth {
		return p.node
	}
	cut := len(low.ids) - (low.depth - p.depth)
	mid := t.add(low.parent, low.ids[:cut:cut])
	n := &t.nodes[p.node]
	n.ids, n.parent = low.ids[cut:], mid
	if n.jump == low.parent {
		n.jump = mid
	}
	t.kids[edgeKey(mid, n.ids[0])] = p.node
	return mid
}

// walk follows ids from p, adds those that the tree lacks, and returns the place after the last id.
// With own the added edge is a copy, so that a long prompt with only a few new ids is not retained.
func (t *trie) walk(p position, ids []rollout.TokenID, own bool) position {
	for len(ids) > 0 {
		n := &t.nodes[p.node]
		if p.depth == n.depth {
			child, ok := t.kids[edgeKey(p.node, ids[0])]
			if !ok {
				return t.leaf(p.node, ids, own)
			}
			p.node = child
			n = &t.nodes[child]
		}
		edge := n.ids[len(n.ids)-(n.depth-p.depth):]
		k := commonPrefix(edge, ids)
		p.depth += k
		ids = ids[k:]
		if k < len(edge) && len(ids) > 0 {
			return t.leaf(t.split(p), ids, own)
		}
	}
	return p
}

func (t *trie) leaf(parent int32, ids []rollout.TokenID, own bool) position {
	if own {
		ids = slices.Clone(ids)
	}
	at := t.add(parent, ids)
	return position{at, t.nodes[at].depth}
}

// locate returns the position at depth on the path from the root to node at.
func (t *trie) locate(at int32, depth int) position {
	for {
		n := &t.nodes[at]
		switch {
		case n.parent == none || t.nodes[n.parent].depth < depth:
			return position{at, depth}
		case t.nodes[n.jump].depth >= depth:
			at = n.jump
		default:
			at = n.parent
		}
	}
}

// path appends the nodes between depth from (exclusive) and node at, top first. The edge of the
// first may begin before from.
func (t *trie) path(dst []int32, at int32, from int) []int32 {
	start := len(dst)
	for at != 0 && t.nodes[at].depth > from {
		dst = append(dst, at)
		at = t.nodes[at].parent
	}
	slices.Reverse(dst[start:])
	return dst
}

// pieces appends the ids on the path to node at, from offset from, edge by edge.
func (t *trie) pieces(dst [][]rollout.TokenID, at int32, from int) [][]rollout.TokenID {
	for _, x := range t.path(nil, at, from) {
		n := &t.nodes[x]
		dst = append(dst, n.ids[max(0, from-(n.depth-len(n.ids))):])
	}
	return dst
}

// appendIDs appends the ids from offset from to node at.
func (t *trie) appendIDs(dst []rollout.TokenID, at int32, from int) []rollout.TokenID {
	for _, ids := range t.pieces(nil, at, from) {
		dst = append(dst, ids...)
	}
	return dst
}

// appendFirst appends up to n ids on the path to node at, from offset from.
func (t *trie) appendFirst(dst []rollout.TokenID, at int32, from, n int) []rollout.TokenID {
	end := t.locate(at, from+n)
	rest := t.nodes[end.node].depth - end.depth
	dst = t.appendIDs(dst, end.node, from)
	return dst[:len(dst)-rest]
}

// preorder lists each node before the nodes below it, which follow it as one contiguous range.
type preorder struct {
	nodes    []int32
	in, last []int32 // by node: its index in nodes, and the index of the last node below it
}

func (t *trie) preorder() preorder {
	n := len(t.nodes)
	first, next := filled(n, none), make([]int32, n)
	for x := int32(n - 1); x >= 0; x-- {
		if p := t.nodes[x].parent; p != none {
			next[x], first[p] = first[p], x
		} else {
			next[x] = none
		}
	}
	o := preorder{make([]int32, 0, n), make([]int32, n), make([]int32, n)}
	for x := int32(0); x != none; {
		o.in[x] = int32(len(o.nodes))
		o.nodes = append(o.nodes, x)
		if first[x] != none {
			x = first[x]
			continue
		}
		for x != none { // all below x is listed
			o.last[x] = int32(len(o.nodes) - 1)
			if next[x] != none {
				x = next[x]
				break
			}
			x = t.nodes[x].parent
		}
	}
	return o
}

// holds reports whether x is a or below a.
func (o *preorder) holds(a, x int32) bool { return o.in[a] <= o.in[x] && o.in[x] <= o.last[a] }

// meet returns the depth at which the paths to a and b diverge. Neither is on the path to the
// other.
func (t *trie) meet(a, b int32, o *preorder) int {
	for !o.holds(a, b) {
		if far := t.nodes[a].jump; !o.holds(far, b) {
			a = far
		} else {
			a = t.nodes[a].parent
		}
	}
	return t.nodes[a].depth
}

// commonPrefix returns the length of the common prefix of a and b. It compares block by block,
// which the compiler turns into a memory compare.
func commonPrefix(a, b []rollout.TokenID) int {
	n := min(len(a), len(b))
	if n == 0 || &a[0] == &b[0] {
		return n
	}
	const block = 128
	i := 0
	for i+block <= n && *(*[block]rollout.TokenID)(a[i:]) == *(*[block]rollout.TokenID)(b[i:]) {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
