package tokens

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFill(t *testing.T) {
	for n := range 100 {
		got := make([]int32, n+2)
		fill(got[1:n+1], 7)
		require.Equal(t, slices.Concat([]int32{0}, slices.Repeat([]int32{7}, n), []int32{0}), got)
		other := slices.Clone(got)
		require.Equal(t, n+2, common(got, other))
		for k := range other {
			other[k]++
			require.Equal(t, k, common(got, other))
			other[k]--
		}
	}
}
