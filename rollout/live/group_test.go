package live_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// A group that contains a rollout twice, or that has no key, is refused.
func TestAGroupHasAKeyAndEachSessionOnce(t *testing.T) {
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	_, err = begin(t, rec, live.Start{ID: "a"}).End(t.Context(), live.Ending{})
	require.NoError(t, err)
	for _, g := range []live.Group{{}, {Key: "g"}, {Sessions: []string{"a"}}, {Key: "g", Sessions: []string{"a", "a"}}} {
		require.ErrorIs(t, rec.CompleteGroup(t.Context(), g), rollout.KindInput, "%+v", g)
	}
	require.Empty(t, rec.Groups())
	require.NoError(t, rec.CompleteGroup(t.Context(), live.Group{Key: "g", Sessions: []string{"a"}}))
}
