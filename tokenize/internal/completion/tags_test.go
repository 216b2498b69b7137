package completion

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The check before the expression misses no tag.
func TestThinkTags(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	words := []string{"<", "[", "/", ">", "]", "think", "ThinKing", "thin\u212a", "thought", "REASONING", "seed:", "\u017feed:", "mm:", ":open", ":", "x", " ", "\n", "|im_start|", "\u00c5"}
	found := 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + rng.IntN(8) {
			b.WriteString(words[rng.IntN(len(words))])
		}
		want := ThinkTag.FindAllStringIndex(b.String(), -1)
		require.Equal(t, want, thinkTags(b.String()), b.String())
		found += len(want)
	}
	require.Greater(t, found, 40)
	for _, tag := range []string{"<\u017feed:thin\u212a>", "<think>", "[/THINK]", "</mm:think>", "<think:opensource>", "<thinking:x>", "<\u212a\u212a\u212a\u212a\u212a\u212a\u212a\u212a:reasoning>"} {
		require.NotEmpty(t, thinkTags("a "+tag), tag)
	}
}
