package tokens

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// A token stands alone where no pair of tokens, looked at one by one, says otherwise.
func TestStandAloneIsLookingAtEachPair(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	word := func(most int) string {
		b := make([]byte, rng.IntN(most+1))
		for i := range b {
			b[i] = "<|ab>"[rng.IntN(5)]
		}
		return string(b)
	}
	some := 0
	for round := range 5000 {
		tokens := make([]engine.AddedToken, 1+rng.IntN(8))
		for i := range tokens {
			tokens[i] = engine.AddedToken{ID: rollout.TokenID(i), Content: word(9)}
		}
		got := standAlone(tokens)
		for i, a := range tokens {
			want := a.Content != ""
			for _, b := range tokens {
				want = want && (b.ID == a.ID || !strings.Contains(b.Content, a.Content))
				for k := 1; k < len(a.Content); k++ {
					want = want && !strings.HasSuffix(b.Content, a.Content[:k])
				}
			}
			require.Equal(t, want, got[i], "seed %d, round %d: %q in %q", seed, round, a.Content, tokens)
			if want {
				some++
			}
		}
	}
	require.Greater(t, some, 1000, "the case of a token that stands alone is met")
}
