package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
)

// TestVocab: a vocabulary equals a map, whatever entries move and however it grew, for lookups one by one and many at
// once.
func TestVocab(t *testing.T) {
	kit.OneGoroutine(t)
	r := rand.New(rand.NewPCG(7, 0))
	for round := range 50 {
		v, want := NewVocab(r.IntN(100), 0), map[string]int32{}
		moves := round%2 == 0
		for id := range int32(1000) {
			s := fmt.Sprintf("%0*d", 1+r.IntN(20), r.IntN(5000))
			if _, ok := want[s]; ok && !moves {
				continue
			}
			want[s] = id
			require.NoError(t, v.Add([]byte(s), int(id)))
		}
		require.Equal(t, len(want), v.Len())
		var spellings [][]byte
		for range 10 * Many {
			spellings = append(spellings, fmt.Appendf(nil, "%0*d", 1+r.IntN(20), r.IntN(5000)))
		}
		find := func(s []byte) int32 {
			if id, ok := want[string(s)]; ok {
				return id
			}
			return -1
		}
		var ids [Many]int32
		for len(spellings) > 0 {
			some := spellings[:min(len(spellings), 1+r.IntN(Many))]
			spellings = spellings[len(some):]
			v.FindAll(ids[:], some)
			for i, s := range some {
				require.Equal(t, find(s), ids[i], "%q", s)
				require.Equal(t, find(s), v.Find(s), "%q", s)
			}
		}
	}
}
