package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

func TestTools(t *testing.T) {
	_, err := toolsValue([]rollout.Tool{rollout.Tool(`{`)})
	require.ErrorContains(t, err, "tool 0 is not JSON")
	none, err := toolsValue(nil)
	require.NoError(t, err)
	require.Zero(t, none)
}
