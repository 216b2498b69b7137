package completion

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// visibleLen finds the markers of reasoning that ThinkTag finds, in a fraction of its time.
func TestVisibleLenLeavesOutMarkersAndSpace(t *testing.T) {
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 0))
	words := []string{"<think>", "</Think>", "[THINK]", "[/seed:reasoning]", "<seed:think>", "<<thought>", "<thinking", "[", "</", "<t", "a", "é", " ", "\n", "\u00a0", "x[i]", "<r>", "\xff", ">"}
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(8) {
			b.WriteString(words[rng.IntN(len(words))])
		}
		want := len(strings.Join(strings.FieldsFunc(ThinkTag.ReplaceAllLiteralString(b.String(), " "), unicode.IsSpace), ""))
		require.Equal(t, want, visibleLen(b.String()), "seed %d: %q", seed, b.String())
	}
}
