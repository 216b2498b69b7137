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
	s := stack{viewed: true}
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
		s.truncate(at)
		s.append(add)
		row := s.columns()
		require.Equal(t, model.clone(), row.clone(), "seed %d", seed)
		views = append(views, view{row.ids, slices.Clone(row.ids), row.source, slices.Clone(row.source)})
		for _, v := range views {
			require.Equal(t, v.wantIDs, v.ids, "seed %d", seed)
			require.Equal(t, v.wantSource, v.source, "seed %d", seed)
		}
	}
}
