package bpe

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// kinds are tokenizers that encode pieces in different ways: pattern, byte level or byte fallback, merges ignored or
// not.
var kinds = []string{"tiny_bytelevel", "tiny_spm", "qwen3", "gptoss", "llama3", "llama2", "gemma3", "deepseek_v3"}

// nearEqual yields n texts, most of a single piece of 1 to 40 bytes. They differ from each other in a bit, a byte,
// the first or the last bytes, or in what precedes them, so a table that compares too little confuses them. words are
// tokens from which many pieces are made.
func nearEqual(r *rand.Rand, words []string, n int, yield func(text string) bool) {
	letters := "abcdefghijklmno"
	chars := []rune("一丁七万丈三上下丌不的了ぁあアаеёßé가나다")
	leads := []string{"", "", " ", "(", "\t", "\n", "_", "0", "'", " (", "  "}
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	word := func(n int) string {
		switch r.IntN(10) {
		case 4, 5, 6: // of few tokens
			return words[r.IntN(len(words))] + words[r.IntN(len(words))]
		case 0, 1:
			var b strings.Builder
			for b.Len() < n {
				b.WriteRune(chars[r.IntN(len(chars))])
			}
			return b.String()
		case 2: // one bit set in each
			b := []byte(strings.Repeat("=", n))
			b[r.IntN(n)] ^= 1 << r.IntN(3)
			return string(b)
		case 3:
			return strconv.FormatUint(r.Uint64(), 10)
		}
		return random(n)
	}
	for n > 0 {
		size := 1 + r.IntN(20)
		base := word(size)
		head, tail := word(8), strings.Repeat("o", 1+r.IntN(9))
		kind, lead := r.IntN(6), leads[r.IntN(len(leads))]
		mixed := r.IntN(2) == 0 // else all of one kind, after the same text
		for range min(n, 128) {
			if mixed {
				kind, lead = r.IntN(6), leads[r.IntN(len(leads))]
			}
			text := base
			switch kind {
			case 0: // one bit, or more of one byte
				b := []byte(base)
				if i := r.IntN(len(b)); b[i] < 0x80 {
					b[i] = (b[i] ^ 1<<r.IntN(7)) & 0x7F
					text = string(b)
				}
			case 1: // the first word of eight bytes differs
				text = random(8) + tail
			case 2: // the bytes after it differ
				text = head + random(1+r.IntN(9))
			case 3: // one byte less, or zero bytes more
				text = head + tail[:r.IntN(len(tail)+1)] + strings.Repeat("\x00", r.IntN(3))
			case 4:
				text = word(1 + r.IntN(40))
			}
			if n--; !yield(lead + text) {
				return
			}
		}
	}
}

// TestRememberedPieces: a tokenizer that has encoded very many nearly equal texts gives the results of a new one.
// TURNPACK_TEXTS sets the number of texts for each tokenizer (1,000,000 for manual runs).
func TestRememberedPieces(t *testing.T) {
	kit.OneGoroutine(t) // for each tokenizer
	texts := 6_000
	if v := os.Getenv("TURNPACK_TEXTS"); v != "" {
		var err error
		texts, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seed = 77
			def := kit.Tokenizer(t, name)
			used, err := Parse(name, def)
			require.NoError(t, err)
			fresh, err := Parse(name, def)
			require.NoError(t, err)
			var got, want engine.Encoding
			var last, words []string
			for id := range 20_000 {
				if s, err := used.Decode([]rollout.TokenID{rollout.TokenID(id)}); err == nil && utf8.ValidString(s) && s != "" {
					words = append(words, s)
				}
			}
			again := 0
			check := func(text string) bool {
				opts := engine.EncodeOptions{Offsets: again%2 == 0}
				again++
				got.Reset()
				want.Reset()
				fresh.(*tokenizer).idle = nil
				require.NoError(t, used.Encode(&got, text, opts))
				require.NoError(t, fresh.Encode(&want, text, opts))
				if !slices.Equal(want.IDs, got.IDs) || !slices.Equal(want.Offsets, got.Offsets) {
					require.Fail(t, "differs", "seed %d, text %d, %q:\n%v %v, fresh\n%v %v", seed, again, text, got.IDs, got.Offsets, want.IDs, want.Offsets)
				}
				return true
			}
			nearEqual(rand.New(rand.NewPCG(seed, 1)), words, texts, func(text string) bool {
				if last = append(last, text); len(last) == 64 {
					check(strings.Join(last, " ")) // in one call, where pieces come in batches
					last = last[:0]
				}
				return check(text)
			})
		})
	}
}

// FuzzWorkers gives a text to workers with different histories: a new one, one that has encoded another text, and
// that one again.
func FuzzWorkers(f *testing.F) {
	f.Add("abcdefghijkl", "abcdefghijkm and (abcdefgh")
	f.Add("一丁七万丈三上下丌不", "丁七万丈 三上, 下丌不的")
	f.Add("don't\n\n  x", "'t\n \n\t12345678901234567 x")
	var toks []engine.Tokenizer
	for _, name := range []string{"tiny_bytelevel", "tiny_spm"} {
		tok, err := Parse(name, kit.Tokenizer(f, name))
		require.NoError(f, err)
		toks = append(toks, tok)
	}
	f.Fuzz(func(t *testing.T, before, text string) {
		for i, tok := range toks {
			encode := func(text string, wide bool) string {
				var e engine.Encoding
				require.NoError(t, tok.Encode(&e, text, engine.EncodeOptions{Offsets: wide}))
				return fmt.Sprint(e.IDs, e.Offsets)
			}
			for _, wide := range []bool{false, true} {
				tok.(*tokenizer).idle = nil
				want := encode(text, wide)
				tok.(*tokenizer).idle = nil
				encode(before, wide)
				require.Equal(t, want, encode(text, wide), "tokenizer %d after %q", i, before)
				require.Equal(t, want, encode(text, wide), "tokenizer %d, again", i)
			}
		}
	})
}
