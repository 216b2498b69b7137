package model

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turnpack/turnpack/internal/kit"
)

// naive applies the merges as the definition says: the lowest rank anywhere,
// leftmost among equals, until none is left.
func naive(p *Pairs, s []sym) []sym {
	s = append([]sym(nil), s...)
	for {
		best, at, into := uint32(noRank), -1, int32(0)
		for i := 0; i+1 < len(s); i++ {
			if r, x := p.merge(s[i].id, s[i+1].id); r < best {
				best, at, into = r, i, x
			}
		}
		if at < 0 {
			return s
		}
		s[at] = sym{into, s[at].n + s[at+1].n, s[at].w + s[at+1].w}
		s = append(s[:at+1], s[at+2:]...)
	}
}

// TestMerge compares every way of merging with the definition, on random tables
// of merges: dense ones, whose tokens grow long, and sparse ones.
func TestMerge(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 20
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 60 {
		letters := 1 + r.IntN(6)
		base := int32(r.IntN(2) * 254)
		tokens := letters
		pairs, there := NewPairs(4), map[[2]int32]bool{}
		for rank := range uint32(1 + r.IntN(80)) {
			a, b := base+int32(r.IntN(tokens)), base+int32(r.IntN(tokens))
			if there[[2]int32{a, b}] {
				continue
			}
			there[[2]int32{a, b}] = true
			pairs.Add(a, b, base+int32(tokens), rank)
			tokens++
		}
		pairs.done()
		m := &merger{pairs: pairs}
		merge := func(s []sym) []sym {
			return m.merge(len(s), func(dst []sym, from, to int) []sym { return append(dst, s[from:to]...) })
		}
		for _, n := range []int{0, 1, 2, 3, 7, 8, 9, shortLen, shortLen + 1, 31, 32, 33, blocksLen - 1, blocksLen, blocksLen + 1, 700, 1500} {
			s := make([]sym, n)
			for i := range s {
				s[i] = sym{base + int32(r.IntN(letters)), 1, 1 + int32(r.IntN(3))}
			}
			want := naive(pairs, s)
			for name, merge := range map[string]func([]sym) []sym{"merge": merge, "whole": m.whole, "queue": m.queue} {
				got := merge(append([]sym(nil), s...))
				require.Equal(t, len(want), len(got), "%s of %d symbols, round %d of seed %d", name, n, round, seed)
				for i := range want {
					require.Equal(t, want[i], got[i], "%s of %d symbols, token %d, round %d of seed %d", name, n, i, round, seed)
				}
			}
		}
	}
}
