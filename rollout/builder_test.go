package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func TestBuilderSetsVersionRuns(t *testing.T) {
	var b rollout.SequenceBuilder
	for i := range int32(4) {
		b.Add(rollout.Token{ID: i, Source: -1, Turn: min(i-1, 0), Flags: map[bool]rollout.Flag{true: rollout.FlagSampled}[i > 0]})
	}
	b.SetVersions(1, []int32{7, 7, 8})
	s, err := b.Build(rollout.Identity{Rollout: "r"})
	require.NoError(t, err)
	require.Equal(t, []int32{-1, 7, 7, 8}, s.Version)
	b.Add(rollout.Token{ID: 1, Source: -1, Turn: -1})
	b.SetVersions(1, []int32{7})
	_, err = b.Build(rollout.Identity{Rollout: "r"})
	require.ErrorIs(t, err, rollout.KindInternal)
}
