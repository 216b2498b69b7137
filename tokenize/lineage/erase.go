package lineage

import (
	"cmp"
	"slices"
)

// erase joins the remaining row ends and starts by giving up whole responses, the cheapest first.
// Retries could follow each other in a cycle, so this is no matching: a row end never takes the
// start of its own row.
func (r *repairs) erase() {
	type erasure struct {
		i    int32
		land landing
	}
	var found []erasure
	heads := r.heads()
	headOf, endOf := filled(len(r.turns), none), filled(len(r.turns), none) // by row end, by row start
	for _, j := range heads {
		i := j
		for r.succ[i] != none {
			i = r.succ[i]
		}
		headOf[i], endOf[j] = j, i
		for x := r.turns[i].prompt; x != none; x = r.trie.nodes[x].parent {
			at := r.trie.nodes[x].depth
			lost := r.turns[i].fLen() - at
			// A row that may hold respelled text is cut only at the start of a response: other
			// positions have no counterpart inside a respelled run.
			if !r.opts.affords(lost, lost) || r.opts.splices() && x != r.turns[i].prompt {
				break
			}
			found = append(found, erasure{i, landing{x, joint{joinRealign, at, lost}}})
		}
	}
	slices.SortFunc(found, func(a, b erasure) int {
		return cmp.Or(cmp.Compare(a.land.jt.cost, b.land.jt.cost), cmp.Compare(r.turns[a.i].pLen, r.turns[b.i].pLen), cmp.Compare(a.i, b.i))
	})
	open := newOpenStarts(r.merge, heads)
	for _, e := range found {
		if r.succ[e.i] != none {
			continue
		}
		k, ok := open.first(e.land.node)
		if ok && open.turns[k] == headOf[e.i] {
			k, ok = open.from(k+1, e.land.node)
		}
		if !ok {
			continue
		}
		j := open.turns[k]
		open.take(k)
		r.link(e.i, j, e.land.jt)
		headOf[endOf[j]], endOf[headOf[e.i]] = headOf[e.i], endOf[j]
	}
}
