package model

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A slot answers for its own piece alone: not for one that differs in a bit, or in its
// length, whatever bits the rest has.
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
		if n < maxShortKey { // a zero byte more
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
