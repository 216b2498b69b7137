package places_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/traj/internal/places"
)

func TestList(t *testing.T) {
	one := &places.Place{ID: "a", Group: "g", Index: 3}
	task := &places.Place{ID: "b", Group: "7@2", Index: 1 << 20, Name: "7", Task: [16]byte{1, 15: 2}}
	var l places.List
	l.Add(1, one)
	l.Add(4, task)
	l.Add(4, nil)
	l.Add(9, one)
	l.Pack()
	text, err := json.Marshal(&l)
	require.NoError(t, err)

	read := func() *places.List {
		var l places.List
		require.NoError(t, json.Unmarshal(text, &l))
		require.True(t, l.Unpack())
		return &l
	}
	got := read()
	require.Equal(t, 9, got.Last)
	require.Empty(t, got.Of(0))
	require.Equal(t, []*places.Place{one}, got.Of(1))
	require.Empty(t, got.Of(1), "it was asked for before")
	require.Empty(t, got.Of(3))
	require.Equal(t, []*places.Place{task, nil}, got.Of(4))
	require.Equal(t, []*places.Place{one}, got.Of(9))
	require.Empty(t, got.Of(10))
	require.Equal(t, []*places.Place{one}, read().Of(9), "lines may be left out")

	l = *read()
	l.Pack()
	for i := range l.Packed { // damage is detected or gives other places; it never panics
		damaged := places.List{Packed: append([]byte(nil), l.Packed...)}
		damaged.Packed[i] ^= 0xff
		if damaged.Unpack() {
			for line := range 12 {
				damaged.Of(line)
			}
		}
	}
}
