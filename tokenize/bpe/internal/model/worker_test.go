package model

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/turnpack/turnpack/internal/kit"
)

// A slot holds only its own piece: not one that differs in a bit or in its length, whatever the other bits are.
func TestSlotHoldsOnePiece(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + r.IntN(maxShortKey)
		piece := make([]byte, n, maxShortKey)
		for i := range piece {
			piece[i] = byte(r.Uint32())
		}
		k := keyOf(piece, 0, n)
		x := slot{a: k.a, b: k.b, meta: uint32(n) | 1<<5}
		require.True(t, x.holds(&k, n))
		if n < maxShortKey { // one zero byte more
			longer := keyOf(append(piece, 0), 0, n+1)
			require.False(t, x.holds(&longer, n+1))
		}
		for bit := range 8 * n {
			piece[bit/8] ^= 1 << (bit % 8)
			other := keyOf(piece, 0, n)
			require.False(t, x.holds(&other, n), "bit %d of %d bytes", bit, n)
			piece[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// TestNearEqualPieces: each of very many pieces that are single tokens gives its own token, in any order and number.
// They differ from each other in one or a few bits, in their length, or in only one of their two words.
func TestNearEqualPieces(t *testing.T) {
	kit.OneGoroutine(t)
	const seed, most = 5, 40_000
	r := rand.New(rand.NewPCG(seed, 0))
	v := NewVocab(most, 40*most)
	spell := func(b byte) rune { return rune(b) + 0x100 }
	unspell := func(dst, s []byte) ([]byte, bool) {
		for _, c := range string(s) {
			dst = append(dst, byte(c-0x100))
		}
		return dst, true
	}
	spelled := func(piece []byte) (out []byte) {
		for _, b := range piece {
			out = utf8.AppendRune(out, spell(b))
		}
		return out
	}
	var pieces [][]byte
	add := func(piece []byte) {
		if s := spelled(piece); len(piece) > 0 && v.Find(s) < 0 {
			require.NoError(t, v.Add(s, len(pieces)))
			pieces = append(pieces, slices.Clone(piece))
		}
	}
	for b := range 256 {
		add([]byte{byte(b)})
	}
	for len(pieces) < most {
		n := 1 + r.IntN(20)
		base := make([]byte, n)
		for i := range base {
			base[i] = []byte{'a', 0, 0xFF, byte(r.Uint32())}[r.IntN(4)]
		}
		if r.IntN(2) == 0 { // all bits of the second word are set
			for i := 8; i < n; i++ {
				base[i] = 0xFF
			}
		}
		add(base)
		for range 200 {
			next := slices.Clone(base)
			for range 1 + r.IntN(3) {
				next[r.IntN(min(n, 8))] ^= 1 << r.IntN(8)
				if r.IntN(3) == 0 {
					next[r.IntN(n)] ^= 1 << r.IntN(8)
				}
			}
			add(next[:n-r.IntN(2)])
			if r.IntN(20) == 0 {
				add(append(next, 0))
			}
		}
	}
	m := &Model{Vocab: v, Pairs: NewPairs(1), Unk: -1, IgnoreMerges: true, Exact: true}
	require.NoError(t, m.Init(spell, unspell, func() (*Pairs, error) { return m.Pairs, nil }))
	require.True(t, m.Raw())
	w := m.NewWorker()
	for range 20 * most {
		// Drawn from few pieces at a time, so that they recur before others replace them.
		id := (r.IntN(64) + r.IntN(2)*r.IntN(len(pieces))) % len(pieces)
		require.Equal(t, []ID{ID(id)}, w.AppendPiece(nil, pieces[id]), "seed %d: %x", seed, pieces[id])
	}
}

// TestManyIDs: pieces with more ids than fit in a slot give their ids when new, when cached, and after the store of
// such ids was emptied.
func TestManyIDs(t *testing.T) {
	kit.OneGoroutine(t)
	const size, pieces = 300, 150_000
	v := NewVocab(size, 4*size)
	spell := func(b byte) rune { return rune(b) + 0x100 }
	for b := range 256 {
		require.NoError(t, v.Add([]byte(string(spell(byte(b)))), b))
	}
	m := &Model{Vocab: v, Unk: -1, Exact: true}
	unspell := func(dst, s []byte) ([]byte, bool) {
		for _, c := range string(s) {
			dst = append(dst, byte(c-0x100))
		}
		return dst, true
	}
	require.NoError(t, m.Init(spell, unspell, func() (*Pairs, error) { return NewPairs(1), nil }))
	w := m.NewWorker()
	r := rand.New(rand.NewPCG(6, 0))
	var got []ID
	for i := range 2 * pieces {
		n := i % pieces
		if i%2 == 0 {
			n = r.IntN(64) // recurs often
		}
		piece := []byte{byte(n), byte(n >> 8), byte(n >> 16), 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43}[:4+n%13]
		got = w.AppendPiece(got[:0], piece)
		if !slices.EqualFunc(got, piece, func(id ID, b byte) bool { return id == ID(b) }) {
			require.Fail(t, "differs", "piece %d, %x: %v", i, piece, got)
		}
	}
	require.Positive(t, w.long.emptied)
}
