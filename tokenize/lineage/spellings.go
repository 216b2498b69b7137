package lineage

import (
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// spellings finds the places of the tree where the text of a turn's full ids ends, in any spelling,
// by a hash of the text. Two spellings of one text diverge at a node after which the text of one id
// is a prefix of that of another; only ids below such nodes are hashed.
type spellings struct {
	*merge
	hash   []uint64           // by node: hash of the text up to its end; 0 = not hashed
	places map[uint64][]int32 // by hash of a turn's text: the nodes on whose edge it ends
	texts  []string           // scratch
}

func newSpellings(m *merge) *spellings {
	s := &spellings{merge: m, hash: make([]uint64, len(m.trie.nodes)), places: make(map[uint64][]int32)}
	for _, x := range m.pre.nodes {
		if h := s.before(x); h != 0 {
			for _, id := range m.trie.nodes[x].ids {
				h = s.extend(h, id)
			}
			s.hash[x] = h
		} else if s.rivals(x) {
			s.hash[x] = uint64(x) + 1 // a seed: texts below it are compared with each other only
		}
	}
	for i := range m.turns {
		if r := &m.turns[i]; r.trained() && s.before(r.full) != 0 {
			s.places[s.hash[r.full]] = nil
		}
	}
	for _, x := range m.pre.nodes {
		h := s.before(x)
		if h == 0 {
			continue
		}
		for _, id := range m.trie.nodes[x].ids {
			h = s.extend(h, id)
			if at, ok := s.places[h]; ok && (len(at) == 0 || at[len(at)-1] != x) {
				s.places[h] = append(at, x)
			}
		}
	}
	return s
}

// of returns the nodes on whose edges the text of a turn's full ids ends. A few may be wrong: equal
// hashes are no proof.
func (s *spellings) of(full int32) []int32 {
	if s.before(full) == 0 {
		return nil
	}
	return s.places[s.hash[full]]
}

// before returns the hash at the start of the edge to node x.
func (s *spellings) before(x int32) uint64 {
	if x == 0 {
		return 0
	}
	return s.hash[s.trie.nodes[x].parent]
}

// extend is FNV-1a.
func (s *spellings) extend(h uint64, id rollout.TokenID) uint64 {
	text := s.opts.Text(id)
	for k := range len(text) {
		h = (h ^ uint64(text[k])) * 1099511628211
	}
	return h
}

// rivals reports whether two spellings of one text may diverge at node x.
func (s *spellings) rivals(x int32) bool {
	if s.pre.last[x] <= s.pre.in[x]+1 {
		return false
	}
	texts := s.texts[:0]
	for k := s.pre.in[x] + 1; k <= s.pre.last[x]; k = s.pre.last[s.pre.nodes[k]] + 1 {
		texts = append(texts, s.opts.Text(s.trie.nodes[s.pre.nodes[k]].ids[0]))
	}
	s.texts = texts
	slices.Sort(texts)
	for k := 1; k < len(texts); k++ {
		if strings.HasPrefix(texts[k], texts[k-1]) {
			return true
		}
	}
	return false
}
