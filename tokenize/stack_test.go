package tokenize

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// Views of a stack never change, whatever is put later.
func TestStackViewsStay(t *testing.T) {
	const seed = 63
	rng := rand.New(rand.NewPCG(seed, 0))
	var s stack
	type view struct{ ids, wantIDs, source, wantSource []int32 }
	var views []view
	var model columns
	for range 500 {
		at := rng.IntN(model.len() + 1)
		var add columns
		for range rng.IntN(12) {
			k := at + add.len()
			if k < model.len() && rng.IntN(10) > 0 { // mostly what is there already
				add.add(model.ids[k], model.source[k], rollout.Flag(rng.IntN(4)))
			} else {
				add.add(rng.Int32N(5), rng.Int32N(2), rollout.Flag(rng.IntN(4)))
			}
		}
		model = model.slice(0, at).clone()
		model.append(add)
		s.put(at, add)
		n := model.len()
		require.Equal(t, model.ids, append([]int32(nil), s.ids[:n]...), "seed %d", seed)
		require.Equal(t, model.source, append([]int32(nil), s.source[:n]...), "seed %d", seed)
		require.Equal(t, model.flags, append([]rollout.Flag(nil), s.flags[:n]...), "seed %d", seed)
		views = append(views, view{s.ids[:n:n], slices.Clone(s.ids[:n]), s.source[:n:n], slices.Clone(s.source[:n])})
		for _, v := range views {
			require.Equal(t, v.wantIDs, v.ids, "seed %d", seed)
			require.Equal(t, v.wantSource, v.source, "seed %d", seed)
		}
	}
}
