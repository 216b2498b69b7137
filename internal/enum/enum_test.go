package enum_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/enum"
	"github.com/turnpack/turnpack/rollout"
)

type colour uint8

var colours = []string{"red", "green"}

func TestNamesAndValues(t *testing.T) {
	for i, name := range colours {
		require.Equal(t, name, enum.Name(colours, colour(i), "colour"))
		got, err := enum.Parse[colour](colours, name, "colour")
		require.NoError(t, err)
		require.Equal(t, colour(i), got)
	}
	require.Equal(t, "colour(9)", enum.Name(colours, colour(9), "colour"))
	_, err := enum.Parse[colour](colours, "blue", "paint")
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, `found "blue", expected one of red, green`)
}
