package tokens

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/tokenize/engine"
)

// standAlone reports for each added token whether it matches wherever its text occurs, so
// that the text after it encodes independently: no other token contains it, and no token,
// itself included, ends with a prefix of it. The time is nearly linear in the length of all
// tokens; the automaton is that of Aho and Corasick (1975).
func standAlone(added []engine.AddedToken) []bool {
	t := newContentTrie(added)
	alone := make([]bool, len(added))
	for i, a := range added {
		at := int32(0)
		alone[i] = a.Content != ""
		for k := 0; k < len(a.Content); k++ {
			at = t.edges[edge(at, a.Content[k])]
			if n := &t.nodes[at]; k+1 < len(a.Content) && n.endsToken {
				alone[i] = false
			}
		}
		if n := &t.nodes[at]; n.inside || n.shared {
			alone[i] = false
		}
	}
	return alone
}

// contentTrie holds the prefixes of added tokens as nodes; node 0 is the empty one.
type contentTrie struct {
	edges map[uint64]int32 // by edge
	nodes []contentNode
}

// edge is the key of the step from a node by a byte; maps with integer keys are fast.
func edge(from int32, by byte) uint64 { return uint64(from)<<8 | uint64(by) }

// contentNode is a prefix of some token.
type contentNode struct {
	suffix    int32 // the longest other node that is a suffix of this one
	parent    int32
	by        byte
	depth     int32
	token     int32 // one more than the id of the token that it is, 0 for none
	shared    bool  // two tokens are spelled so
	inside    bool  // a longer prefix continues it or ends with it
	endsToken bool  // some token ends with it
}

func newContentTrie(added []engine.AddedToken) *contentTrie {
	t := &contentTrie{edges: map[uint64]int32{}, nodes: make([]contentNode, 1)}
	for _, a := range added {
		at := int32(0)
		for k := 0; k < len(a.Content); k++ {
			e := edge(at, a.Content[k])
			next, ok := t.edges[e]
			if !ok {
				next = int32(len(t.nodes))
				t.edges[e] = next
				t.nodes = append(t.nodes, contentNode{parent: at, by: a.Content[k], depth: int32(k + 1)})
				t.nodes[at].inside = true
			}
			at = next
		}
		n := &t.nodes[at]
		n.shared = n.shared || n.token != 0 && n.token != int32(a.ID)+1
		n.token, n.endsToken = int32(a.ID)+1, true
	}
	// in order of depth: the suffix of a node is shorter than the node
	order := make([]int32, len(t.nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, k int32) int { return cmp.Compare(t.nodes[i].depth, t.nodes[k].depth) })
	for _, i := range order {
		n := &t.nodes[i]
		if n.depth < 2 {
			continue
		}
		for s := t.nodes[n.parent].suffix; ; s = t.nodes[s].suffix {
			if next, ok := t.edges[edge(s, n.by)]; ok {
				n.suffix = next
				t.nodes[next].inside = true
				break
			}
			if s == 0 {
				break
			}
		}
	}
	for _, i := range slices.Backward(order) {
		if n := &t.nodes[i]; n.endsToken {
			t.nodes[n.suffix].endsToken = true
		}
	}
	return t
}
