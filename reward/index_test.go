package reward

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyIndexIsAMap(t *testing.T) {
	rnd := seeded(t)
	x, want := newKeyIndex(), map[string]int{}
	for range 20000 {
		key := fmt.Sprint(rnd.IntN(5000))
		if rnd.IntN(3) == 0 {
			n, ok := x.get(key)
			w, in := want[key]
			require.Equal(t, in, ok)
			require.Equal(t, w, n)
			continue
		}
		n, isNew := x.add(key)
		w, in := want[key]
		if !in {
			w = len(want)
			want[key] = w
		}
		require.Equal(t, !in, isNew)
		require.Equal(t, w, n)
	}
	require.Len(t, x.keys, len(want))
	_, ok := (&keyIndex{}).get("")
	require.False(t, ok)
}
