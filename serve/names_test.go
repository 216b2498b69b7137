package serve

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However few names are remembered, no group repeats a step, and recently used groups continue theirs.
func TestNamesAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	n, seen := newNames(50), map[string]bool{}
	for range 20_000 {
		group := fmt.Sprint(rng.IntN(400))
		step := n.get(group).step
		key := fmt.Sprint(group, "@", step)
		require.False(t, seen[key], key)
		seen[key] = true
		n.atLeast(group, step+1)
		require.Equal(t, step+1, n.get(group).step)
		require.LessOrEqual(t, len(n.now)+len(n.before), 100)
	}
	at := time.Unix(7, 0)
	n.set("short", func(x *name) { x.short = at })
	for i := range 49 {
		n.atLeast(fmt.Sprint("other", i), 1)
	}
	require.Equal(t, at, n.get("short").short)
	require.Zero(t, newNames(1).get("a").step)
}
