package uni

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFirstJoining checks the bound below which characters need no lookup of pairs.
func TestFirstJoining(t *testing.T) {
	u := Load()
	require.NotEmpty(t, u.pairs)
	for p := range u.pairs {
		require.GreaterOrEqual(t, p[1], rune(firstJoining), "the pair %U", p)
	}
}
