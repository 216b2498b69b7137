package live

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// prefixes is a radix tree over the full ids (prompt and output) of the turns of a
// rollout. Its labels are views of the turns' own ids: it holds no id itself.
type prefixes struct{ nodes []prefixNode }

// prefixNode is a run of ids after those of its parents. Turn is the one whose ids the
// label is: the labels from the root to here begin its full ids.
type prefixNode struct {
	label []rollout.TokenID
	turn  int
	next  []int // children, by the first id of their labels
}

// place is a point in the tree: after the first off ids of the label of node at.
type place struct{ at, off int }

// match follows ids from p as far as the tree has them.
func (x *prefixes) match(p place, ids []rollout.TokenID) (place, int) {
	if x.nodes == nil {
		x.nodes = []prefixNode{{turn: -1}}
	}
	n := 0
	for {
		label := x.nodes[p.at].label
		for n < len(ids) && p.off < len(label) && label[p.off] == ids[n] {
			n++
			p.off++
		}
		if n == len(ids) || p.off < len(label) {
			return p, n
		}
		i, found := x.child(p.at, ids[n])
		if !found {
			return p, n
		}
		p = place{x.nodes[p.at].next[i], 0}
	}
}

func (x *prefixes) child(at int, first rollout.TokenID) (int, bool) {
	return slices.BinarySearchFunc(x.nodes[at].next, first, func(k int, id rollout.TokenID) int { return int(x.nodes[k].label[0]) - int(id) })
}

// add puts ids of a turn after p and returns the place after them.
func (x *prefixes) add(p place, ids []rollout.TokenID, turn int) place {
	p, n := x.match(p, ids)
	if ids = ids[n:]; len(ids) == 0 {
		return p
	}
	if node := &x.nodes[p.at]; p.off < len(node.label) {
		rest := prefixNode{label: node.label[p.off:], turn: node.turn, next: node.next}
		node.label, node.next = node.label[:p.off], []int{len(x.nodes)}
		x.nodes = append(x.nodes, rest)
	}
	i, _ := x.child(p.at, ids[0])
	x.nodes[p.at].next = slices.Insert(x.nodes[p.at].next, i, len(x.nodes))
	x.nodes = append(x.nodes, prefixNode{label: ids, turn: turn})
	return place{len(x.nodes) - 1, len(ids)}
}
