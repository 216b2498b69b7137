// Package prefix finds the common prefixes of the ids of turns.
package prefix

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Tree is a radix tree over the full ids (prompt and output) of a rollout's turns. Its labels are slices of the
// turns' own ids.
type Tree struct{ nodes []node }

// node holds the ids that follow those of its ancestors. Turn is a turn whose full ids begin with the labels
// from the root to this node; label is a slice of its ids.
type node struct {
	label []rollout.TokenID
	turn  int
	next  []int // children, sorted by the first id of their labels
}

// Place is a point in the tree: after the first off ids of the label of node at.
type Place struct{ at, off int }

// Match follows ids from p as far as the tree contains them, and returns the place reached and the number of
// ids matched.
func (x *Tree) Match(p Place, ids []rollout.TokenID) (Place, int) {
	if x.nodes == nil {
		x.nodes = []node{{turn: -1}}
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
		p = Place{x.nodes[p.at].next[i], 0}
	}
}

func (x *Tree) child(at int, first rollout.TokenID) (int, bool) {
	return slices.BinarySearchFunc(x.nodes[at].next, first, func(k int, id rollout.TokenID) int { return int(x.nodes[k].label[0]) - int(id) })
}

// Add inserts ids of a turn after p and returns the Place after them.
func (x *Tree) Add(p Place, ids []rollout.TokenID, turn int) Place {
	p, n := x.Match(p, ids)
	if ids = ids[n:]; len(ids) == 0 {
		return p
	}
	if n := &x.nodes[p.at]; p.off < len(n.label) {
		rest := node{label: n.label[p.off:], turn: n.turn, next: n.next}
		n.label, n.next = n.label[:p.off], []int{len(x.nodes)}
		x.nodes = append(x.nodes, rest)
	}
	i, _ := x.child(p.at, ids[0])
	x.nodes[p.at].next = slices.Insert(x.nodes[p.at].next, i, len(x.nodes))
	x.nodes = append(x.nodes, node{label: ids, turn: turn})
	return Place{len(x.nodes) - 1, len(ids)}
}

// Has reports whether p, which Add returned, is still a place: a later Add may have split its node before p.
func (x *Tree) Has(p Place) bool { return p.at < len(x.nodes) && p.off <= len(x.nodes[p.at].label) }

// Inner reports whether the ids of a turn continue after p.
func (x *Tree) Inner(p Place) bool {
	return p.off < len(x.nodes[p.at].label) || len(x.nodes[p.at].next) > 0
}

// Turn returns the turn whose ids contain p.
func (x *Tree) Turn(p Place) int { return x.nodes[p.at].turn }
