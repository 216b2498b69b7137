package ssr

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeasure(t *testing.T) {
	require.Equal(t, 0.0, measure("def f(x):\n\treturn x – “é漢”\r\n", 0).NonText)
	require.Equal(t, 1.0, measure("a b c d e", 2).Entropy)
	require.Equal(t, 0.0, measure("a a a a a", 2).Entropy)
	require.Equal(t, 0.75, measure("a a a a a", 2).Repetition)
}
