package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func TestToolbox(t *testing.T) {
	b := &toolbox{}
	tools := []rollout.Tool{rollout.Tool(`{"name":"cat"}`)}
	first, err := b.value(tools)
	require.NoError(t, err)
	again, err := b.value([]rollout.Tool{rollout.Tool(`{"name":"cat"}`)})
	require.NoError(t, err)
	require.True(t, first == again, "the same tools are prepared once")

	copy(tools[0][9:], "dog") // in memory that the toolbox saw
	other, err := b.value(tools)
	require.NoError(t, err)
	require.False(t, first == other)

	_, err = b.value([]rollout.Tool{rollout.Tool(`{`)})
	require.ErrorContains(t, err, "tool 0 is not JSON")
	none, err := b.value(nil)
	require.NoError(t, err)
	require.Zero(t, none)
}
