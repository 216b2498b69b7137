package keys_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/keys"
)

func TestKeys(t *testing.T) {
	var k keys.Keys
	_, known := k.Of("")
	require.False(t, known)
	const n = 20_000
	key := func(i int) string {
		if i == 0 {
			return ""
		}
		return "group-" + strconv.Itoa(i)
	}
	for range 2 {
		for i := range n {
			had := k.Len()
			number, added := k.Add(key(i))
			require.Equal(t, i, number)
			require.Equal(t, had < n, added)
		}
	}
	require.Equal(t, n, k.Len())
	for i := range n {
		number, known := k.Of(key(i))
		require.True(t, known)
		require.Equal(t, i, number)
		require.Equal(t, key(i), k.At(i))
	}
	_, known = k.Of("another")
	require.False(t, known)
}

// Looking a key up allocates nothing.
func TestOfAllocatesNothing(t *testing.T) {
	var k keys.Keys
	k.Add("one")
	key := "two"
	require.Zero(t, testing.AllocsPerRun(100, func() { k.Of(key) }))
}

func TestTable(t *testing.T) {
	var k keys.Table[int32]
	_, known := k.Of("")
	require.False(t, known)
	const n = 20_000
	for again := range 2 {
		for i := range n {
			require.Equal(t, again == 0, k.Add(strconv.Itoa(i), int32(i+again)))
		}
	}
	require.Equal(t, n, k.Len())
	for i := range n {
		value, known := k.Of(strconv.Itoa(i))
		require.True(t, known)
		require.EqualValues(t, i, value, "the first stays")
	}
	_, known = k.Of("another")
	require.False(t, known)
}
