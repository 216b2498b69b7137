package lineage

import "github.com/turnpack/turnpack/rollout"

// TreeNode is one run of distinct ids of a rollout: the ids after its parent's on some full
// sequence, up to where another sequence branches off or an output begins or ends.
type TreeNode struct {
	Parent int               // index of the parent node, -1 for a root
	Start  int               // number of ids before this run in its sequence
	IDs    []rollout.TokenID // a view, not to be changed
	// Turns are the record indices of the turns that sampled this run: none for context, several if
	// calls sampled the same ids after the same context. The run then counts as that many trained
	// copies, each with its own log probabilities.
	Turns []int
}

// Tree returns the prefix-tree plan: each distinct prefix of the rollout once, parents before
// children, for trainers with tree attention. Repairs do not affect it: every sampled token is in
// the engine's own context. Turns excluded from training appear as context.
func (res *Result) Tree() []TreeNode {
	m := res.merge
	if m == nil {
		return nil
	}
	index := filled(len(m.trie.nodes), none)
	out := make([]TreeNode, 0, len(m.trie.nodes))
	var way []int32
	for i := range m.turns {
		if m.turns[i].empty() {
			continue
		}
		// Climb to the first node already placed, then place downwards.
		way = way[:0]
		x := m.turns[i].full
		for x != 0 && index[x] == none {
			way = append(way, x)
			x = m.trie.nodes[x].parent
		}
		for k := len(way) - 1; k >= 0; k-- {
			n := &m.trie.nodes[way[k]]
			node := TreeNode{Parent: int(index[n.parent]), Start: n.depth - len(n.ids), IDs: n.ids}
			for o := m.owner[way[k]]; o != none; o = m.owners[o].next {
				if t := m.owners[o].turn; !m.turns[t].excluded {
					node.Turns = append(node.Turns, int(t))
				}
			}
			index[way[k]] = int32(len(out))
			out = append(out, node)
		}
	}
	return out
}
