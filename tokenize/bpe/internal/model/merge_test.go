package model

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turnpack/turnpack/internal/kit"
)

// naive applies the merges by definition: the lowest rank anywhere, leftmost among equals, until none is left.
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

// TestMerge compares every merging algorithm with the definition, for random dense tables, whose tokens grow long,
// and sparse ones.
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
		pairs.done(nil, false)
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

// TestPrunedMerges: tables with all the ways to cut each token in two merge as without the ways that never happen,
// and apart is right about merges across a seam. Some tokens come before the tokens that they are made of, as in
// published files.
func TestPrunedMerges(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 21
	r := rand.New(rand.NewPCG(seed, 0))
	pruned, apart, joined := 0, 0, 0
	for round := range 300 {
		letters := 1 + r.IntN(3)
		var texts []string
		ids := map[string]int32{}
		add := func(s string) {
			if _, there := ids[s]; !there {
				ids[s] = int32(len(texts))
				texts = append(texts, s)
			}
		}
		var first []int32
		for k := range letters {
			add(string(rune('a' + k)))
			first = append(first, int32(k))
		}
		for range r.IntN(60) {
			s := texts[r.IntN(len(texts))] + texts[r.IntN(len(texts))]
			if r.IntN(8) == 0 {
				s += texts[r.IntN(len(texts))]
			}
			add(s[:min(len(s), 12)])
		}
		all, some := NewPairs(4), NewPairs(4)
		rank := uint32(0)
		for id, s := range texts {
			for cut := 1; cut < len(s); cut++ {
				a, one := ids[s[:cut]]
				b, two := ids[s[cut:]]
				if one && two {
					all.Add(a, b, int32(id), rank)
					some.Add(a, b, int32(id), rank)
					rank += uint32(round % 2) // ranks of tokens, or of merges
				}
			}
			rank++
		}
		count := len(all.added)
		all.done(nil, true)
		some.done(first, r.IntN(2) == 0)
		require.Nil(t, some.into)
		some.each(func(a, b int32, rank uint32) { count-- })
		pruned += count
		symbols := func(s string) (out []sym) {
			for _, c := range s {
				out = append(out, sym{int32(c - 'a'), 1, 1})
			}
			return out
		}
		for range 50 {
			text := ""
			for range 1 + r.IntN(8) {
				text += texts[r.IntN(len(texts))]
			}
			require.Equal(t, naive(all, symbols(text)), naive(some, symbols(text)), "%q, round %d of seed %d: %q", text, round, seed, texts)
		}
		for range 200 {
			a, b := int32(r.IntN(len(texts))), int32(r.IntN(len(texts)))
			if int(max(a, b)) >= len(some.made) || some.made[a].a == notMade || some.made[b].a == notMade || len(naive(all, symbols(texts[a]))) > 1 || len(naive(all, symbols(texts[b]))) > 1 {
				continue
			}
			got := naive(all, symbols(texts[a]+texts[b]))
			want := len(got) == 2 && got[0].id == a && got[1].id == b
			require.Equal(t, want, some.apart(a, b, noRank), "%q %q, round %d of seed %d: %q", texts[a], texts[b], round, seed, texts)
			if want {
				apart++
			} else {
				joined++
			}
		}
	}
	require.Greater(t, min(pruned, apart, joined), 1000)
}
