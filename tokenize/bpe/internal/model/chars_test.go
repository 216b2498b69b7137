package model

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/turnpack/turnpack/internal/kit"
)

var wordSeam = regexp.MustCompile("[ab][AB]")

// TestChars: merging that begins with characters gives the tokens of merging that begins with bytes, for random
// merges of which many join parts of characters with their neighbours, and also for the words of names.
func TestChars(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 31
	r := rand.New(rand.NewPCG(seed, 0))
	alphabet := []rune("一丁七万丈三上下丌不éèß， aAbB")
	taken, names := 0, 0
	for round := range 400 {
		v := NewVocab(512, 4096)
		spell := func(b byte) rune { return rune(b) + 0x100 }
		unspell := func(dst, s []byte) ([]byte, bool) {
			for _, c := range string(s) {
				dst = append(dst, byte(c-0x100))
			}
			return dst, true
		}
		var tokens []string // byte-level spellings
		for b := range 256 {
			tokens = append(tokens, string(spell(byte(b))))
			require.NoError(t, v.Add([]byte(tokens[b]), b))
		}
		spelled := func(text string) (out []string) {
			for i := range len(text) {
				out = append(out, tokens[text[i]])
			}
			return out
		}
		m := &Model{Vocab: v, Pairs: NewPairs(64), Unk: -1}
		rank, there := uint32(0), map[[2]int32]bool{}
		add := func(a, b string) {
			ia, ib := v.Find([]byte(a)), v.Find([]byte(b))
			if ia < 0 || ib < 0 {
				return
			}
			into := v.Find([]byte(a + b))
			if into >= 0 && round%2 == 0 { // list merges in the order of their products
				return
			}
			if into < 0 {
				into = int32(v.Size())
				require.NoError(t, v.Add([]byte(a+b), int(into)))
			}
			if pair := [2]int32{ia, ib}; !there[pair] {
				there[pair] = true
				m.Pairs.Add(ia, ib, into, rank)
				rank++
			}
		}
		for range 10 + r.IntN(120) {
			c := spelled(string(alphabet[r.IntN(len(alphabet))]))
			d := spelled(string(alphabet[r.IntN(len(alphabet))]))
			switch r.IntN(5) {
			case 0, 1: // the bytes of a character, in either order
				if len(c) == 3 && r.IntN(2) == 0 {
					add(c[1], c[2])
					add(c[0], c[1]+c[2])
				} else if len(c) > 1 {
					add(c[0], c[1])
					if len(c) == 3 {
						add(c[0]+c[1], c[2])
					}
				}
			case 2: // a part of a character with its neighbour
				add(c[len(c)-1], d[0])
			default: // any two tokens of two characters
				all := append(c, d...)
				i := 1 + r.IntN(len(all)-1)
				join := func(s []string) (out string) {
					for _, x := range s {
						out += x
					}
					return out
				}
				add(join(all[:i]), join(all[i:]))
				add(join(c), join(d))
			}
		}
		require.NoError(t, m.Init(spell, unspell, func() (*Pairs, error) { return m.Pairs, nil }))
		require.True(t, m.Raw())
		if m.chars == nil {
			continue
		}
		for range 50 {
			var piece []byte
			for range 1 + r.IntN(20) {
				piece = utf8.AppendRune(piece, alphabet[r.IntN(len(alphabet))])
			}
			symbols := make([]sym, len(piece))
			for i, b := range piece {
				symbols[i] = sym{m.bytes[b], 1, 1}
			}
			var want []ID
			for _, s := range naive(m.Pairs, symbols) {
				want = append(want, s.id)
			}
			if len(m.initial(nil, piece)) < len(piece) {
				taken++
			}
			if m.Pairs.made != nil && wordSeam.Match(piece) {
				names++
			}
			require.Equal(t, want, m.NewWorker().AppendPiece(nil, piece), "round %d of seed %d: %q", round, seed, piece)
		}
	}
	require.Greater(t, taken, 1000, "characters were taken for their bytes")
	require.Greater(t, names, 1000, "pieces had words that begin in upper case")
}
