package added

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// The matcher finds the same as a search for each token at each position: the longest accepted one, the last of equal
// ones, from left to right.
func TestMatcherIsSearchingEachToken(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	word := func(most int) string {
		b := make([]byte, 1+rng.IntN(most))
		for i := range b {
			b[i] = "<<|ab>"[rng.IntN(6)]
		}
		return string(b)
	}
	for round := range 3000 {
		tokens := make([]engine.AddedToken, 1+rng.IntN(12))
		for i := range tokens {
			if tokens[i].Content = word(7); i > 0 && rng.IntN(2) == 0 {
				tokens[i].Content = tokens[rng.IntN(i)].Content + word(4)
			}
		}
		var text []byte
		for range rng.IntN(12) {
			piece := word(4)
			if rng.IntN(2) == 0 {
				piece = tokens[rng.IntN(len(tokens))].Content
				piece = piece[:1+rng.IntN(len(piece))]
			}
			text = append(text, piece...)
		}
		var keep func(token, start, end int) bool
		if round%2 == 1 {
			keep = func(token, start, end int) bool { return (token+start+end)%3 > 0 }
		}
		var want []Span
		for at := 0; at < len(text); at++ {
			best := Span{End: at}
			for i, tok := range tokens {
				end := at + len(tok.Content)
				if end <= len(text) && end >= best.End && string(text[at:end]) == tok.Content && (keep == nil || keep(lastOf(tokens, i), at, end)) {
					best = Span{Token: i, Start: at, End: end}
				}
			}
			if best.End > at {
				want, at = append(want, best), best.End-1
			}
		}
		got := New(tokens, nil).Append(nil, text, keep)
		require.Equal(t, want, got, "seed %d, round %d: %q in %q", seed, round, tokens, text)
	}
}

// Matches of whole words only, as in tokenizers 0.23.
func TestSingleWords(t *testing.T) {
	m := New([]engine.AddedToken{{Content: "foo", SingleWord: true}, {Content: "x", SingleWord: true}}, nil)
	for text, want := range map[string][]Span{
		"foo bar": {{0, 0, 3}}, "a foo": {{0, 2, 5}}, "(foo)": {{0, 1, 4}}, "foo-foo": {{0, 0, 3}, {0, 4, 7}}, "xx x": {{1, 3, 4}}, "fooxfoo foo": {{0, 8, 11}},
		"foos": nil, "foo_": nil, "éfoo": nil, "foo\u0301": nil,
	} {
		require.Equal(t, want, m.Append(nil, []byte(text), nil), text)
	}
}

// lastOf returns the index of the last token that is spelled like token i.
func lastOf(tokens []engine.AddedToken, i int) int {
	last := i
	for k := i; k < len(tokens); k++ {
		if tokens[k].Content == tokens[i].Content {
			last = k
		}
	}
	return last
}

// White space that tokens include, and where the next token may begin, is searched only once: a megabyte of spaces
// takes no longer than other text.
func TestSearchIsLinear(t *testing.T) {
	spaces := []byte(strings.Repeat(" ", 1<<20))
	for reason, tokens := range map[string][]engine.AddedToken{
		"taken along on the right": {{Content: " ", RStrip: true}},
		"taken along on the left":  {{Content: "x", LStrip: true}, {Content: " ", LStrip: true}},
		"single words":             {{Content: "x", SingleWord: true}, {Content: " ", SingleWord: true}},
		"a rare second first byte": {{Content: " "}, {Content: "x"}},
	} {
		m := New(tokens, nil)
		kit.Within(t, 2*time.Second, 256<<20, func() { m.Append(nil, spaces, nil) })
		kit.Within(t, 2*time.Second, 1<<20, func() { m.Append(nil, spaces, func(int, int, int) bool { return false }) })
		require.NotEmpty(t, m.Append(nil, spaces[:100], nil), reason)
	}
	tokens := make([]engine.AddedToken, 100_000)
	for i := range tokens {
		tokens[i].Content = fmt.Sprintf("<audio_%d_%040d>", i, i)
	}
	kit.Within(t, 2*time.Second, 128<<20, func() { New(tokens, nil) })
}
