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

// As json.dumps of Python 3.13, but for the spelling of strings and numbers.
func TestSpacedJSON(t *testing.T) {
	require.Equal(t, `{"a": "x\\\"y, z:1\\\\", "b": [1e3, 2, {}, []], "c,": {"d": null}}`, spacedJSON(`{"a":"x\\\"y, z:1\\\\" ,"b" :[1e3,2 , { },[ ]],"c,":
	{"d":null}}`))
}
