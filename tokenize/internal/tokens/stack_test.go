package tokens

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
	s := Stack{Viewed: true}
	type view struct{ ids, wantIDs, source, wantSource []int32 }
	var views []view
	var model Columns
	for range 500 {
		at := rng.IntN(model.Len() + 1)
		var add Columns
		for range rng.IntN(12) {
			k := at + add.Len()
			if k < model.Len() && rng.IntN(10) > 0 { // mostly what is there already
				add.Add(model.IDs[k], model.Source[k], rollout.Flag(rng.IntN(4)))
			} else {
				add.Add(rng.Int32N(5), rng.Int32N(2), rollout.Flag(rng.IntN(4)))
			}
		}
		model = model.Slice(0, at).Clone()
		model.append(add)
		s.truncate(at)
		s.append(add)
		row := s.Columns()
		require.Equal(t, model.Clone(), row.Clone(), "seed %d", seed)
		views = append(views, view{row.IDs, slices.Clone(row.IDs), row.Source, slices.Clone(row.Source)})
		for _, v := range views {
			require.Equal(t, v.wantIDs, v.ids, "seed %d", seed)
			require.Equal(t, v.wantSource, v.source, "seed %d", seed)
		}
	}
}
