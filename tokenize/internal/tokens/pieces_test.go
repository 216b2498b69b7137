package tokens

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
	"github.com/turnpack/turnpack/tokenize/internal/render"
)

// unmeasured hides that a tokenizer knows the widths of its tokens.
type unmeasured struct{ engine.Tokenizer }

// TestWidths attributes random texts by the widths of tokens and by their offsets.
func TestWidths(t *testing.T) {
	tok := measured(t)
	byWidth, byOffset := encoderOf(t, tok), encoderOf(t, unmeasured{tok})
	require.NotNil(t, byWidth.widths)
	require.Nil(t, byOffset.widths)
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"the ", "func main() {\n", "\n\n", "    ", "日本語", "é", "naïve ", "<|im_end|>", "<think>", "</tool_call>", "0123456789", "<|im_", "a", "😀"}
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[rng.IntN(len(words))])
		}
		return b.String()
	}
	for range 200 {
		var r render.Rendering
		for m := range rng.IntN(6) {
			r.Text += "<|im_start|>user\n"
			from := len(r.Text)
			if r.Text += text(1 + rng.IntN(60)); rng.IntN(3) == 0 {
				r.Text = r.Text[:from] + []string{"<think>", ""}[rng.IntN(2)] + strings.Repeat("\nword 日本", 1+rng.IntN(20))
			}
			r.Fields = append(r.Fields, render.Field{Start: from, End: len(r.Text), Message: int32(m), Part: render.PartContent})
			if rng.IntN(2) == 0 {
				from = len(r.Text)
				r.Text += text(1 + rng.IntN(3))
				r.Fields = append(r.Fields, render.Field{Start: from, End: len(r.Text), Message: int32(m), Part: render.PartToolCall})
			}
			r.Text += []string{"<|im_end|>\n", "\n\nplain ", "."}[rng.IntN(3)]
		}
		if rng.IntN(20) == 0 {
			r.Text += strings.Repeat(" word", 30_000) // handed over in sections
			r.Text += "\xff"
		}
		want, err := byOffset.EncodeAll(&r)
		require.NoError(t, err)
		have, err := byWidth.EncodeAll(&r)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(have), "%q", r.Text)
	}
}

func measured(t *testing.T) engine.Tokenizer {
	tok, err := bpe.Open("../../embedded/tokenizer.json")
	require.NoError(t, err)
	return tok
}

func encoderOf(t *testing.T, tok engine.Tokenizer) *Encoder {
	added, err := NewAddedTokens(tok)
	require.NoError(t, err)
	p := NewEncoder(tok, added, false)
	p.Sampled = func(m int32) bool { return m%2 == 1 }
	return p
}
