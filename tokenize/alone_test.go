package tokenize

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
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
		tokens := make([]AddedToken, 1+rng.IntN(8))
		for i := range tokens {
			tokens[i] = AddedToken{ID: rollout.TokenID(i), Content: word(9)}
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

// Loading a model takes time linear in its added tokens: eight times as many may
// take twenty times as long at most; each pair looked at would make that 64.
func TestManyAddedTokensLoadInLinearTime(t *testing.T) {
	took := func(n int) time.Duration {
		var d map[string]any
		require.NoError(t, json.Unmarshal(kit.Tokenizer(t, "tiny_bytelevel"), &d))
		added := d["added_tokens"].([]any)
		for i := range n {
			added = append(added, map[string]any{"content": fmt.Sprintf("<|audio_%d|>", i), "special": i%2 == 0, "normalized": i%3 == 0})
		}
		d["added_tokens"] = added
		definition, err := json.Marshal(d)
		require.NoError(t, err)
		config := `{"chat_template":"{% for m in messages %}{{m.role}}: {{m.content}}<|im_end|>\n{% endfor %}"}`
		files := fstest.MapFS{"tokenizer.json": {Data: definition}, "tokenizer_config.json": {Data: []byte(config)}}
		best := time.Duration(1 << 62)
		for range 3 {
			start := time.Now()
			m, err := LoadFS(files, ".")
			require.NoError(t, err)
			_, err = NewEncoder(m, Options{})
			require.NoError(t, err)
			best = min(best, time.Since(start))
		}
		return best
	}
	few, many := took(5000), took(40000)
	require.Less(t, many, 20*few, "5,000 added tokens took %v, 40,000 took %v", few, many)
}
