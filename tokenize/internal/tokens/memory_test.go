package tokens

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// Pieces in an arena are those that have memory of their own, and stay so while more are
// made, also in its memory once it was emptied.
func TestArena(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var all Compact
	for range 5000 {
		n := 1 + rng.IntN(60)
		ids := make([]rollout.TokenID, n)
		for i := range ids {
			ids[i] = rng.Int32()
		}
		all.takeIDs(ids)
		all.put(run{all.Len(), rng.Int32N(3) - 1, rollout.Flag(rng.IntN(3))})
	}
	var a Arena
	for range 3 {
		var got, want []Compact
		for range 300 {
			from := rng.IntN(all.Len())
			n := min(rng.IntN(1<<rng.IntN(18)), all.Len()-from)
			got, want = append(got, all.Clone(&a, from, from+n)), append(want, all.Clone(nil, from, from+n))
			if n <= maxArena/8 {
				require.LessOrEqual(t, cap(got[len(got)-1].IDs), max(n, 1), "what is appended goes elsewhere")
			}
		}
		require.Equal(t, want, got)
		require.LessOrEqual(t, cap(a.ids), maxArena)
		a = a.Emptied()
	}
}

func TestFill(t *testing.T) {
	for n := range 100 {
		got := make([]int32, n+2)
		fill(got[1:n+1], 7)
		require.Equal(t, slices.Concat([]int32{0}, slices.Repeat([]int32{7}, n), []int32{0}), got)
		other := slices.Clone(got)
		require.Equal(t, n+2, common(got, other))
		for k := range other {
			other[k]++
			require.Equal(t, k, common(got, other))
			other[k]--
		}
	}
}
