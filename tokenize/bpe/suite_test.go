package bpe_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/bpe"
	"github.com/turnpack/turnpack/tokenize/engine"
)

func TestSuite(t *testing.T) {
	kit.OneGoroutine(t)
	for name, opts := range map[string]promises{
		"tiny_bytelevel": {roundTrip: true}, "tiny_spm": {}, "qwen3": {roundTrip: true}, "llama3": {roundTrip: true},
		"gptoss": {roundTrip: true}, "deepseek_v3": {roundTrip: true}, "llama2": {}, "gemma3": {},
	} {
		if testing.Short() && !strings.HasPrefix(name, "tiny") && name != "qwen3" {
			continue // the others share its code
		}
		t.Run(name, func(t *testing.T) { keepsContract(t, load(t, name), opts) })
	}
	if testing.Short() {
		return
	}
	t.Run("kimi_k2", func(t *testing.T) {
		tok, err := bpe.LoadTiktokenFS(os.DirFS(kit.Fetched(t)), "kimi_k2")
		if err != nil {
			t.Skip("SKIPPED FOR LACK OF A TOKENIZER: run internal/oracle/tokenizers.sh to fetch kimi_k2")
		}
		keepsContract(t, tok, promises{roundTrip: true, exactOffsets: true})
	})
}

// TestSeenText: cached pieces, at other places, give the ids and offsets of a new tokenizer; characters of several
// tokens have overlapping ranges.
func TestSeenText(t *testing.T) {
	kit.OneGoroutine(t)
	const seed = 9
	r := rand.New(rand.NewPCG(seed, 0))
	words := []string{"return", " fmt.Errorf(\"it's %d\", n)", " 漢字仮名交じり文", "𠮷野家", " 한국어", "，你好。", "e\u0301", " 👩‍👧", " plain words of prose", "\t", "1234567", "\n"}
	var lines []string
	for range 200 {
		var b strings.Builder
		for range 3 + r.IntN(12) {
			b.WriteString(words[r.IntN(len(words))])
		}
		lines = append(lines, b.String()+"\n")
	}
	for _, name := range []string{"qwen3", "deepseek_v3"} {
		seen, data := load(t, name), kit.Tokenizer(t, name)
		for round := range 6 {
			var b strings.Builder
			for range 300 {
				b.WriteString(lines[r.IntN(len(lines))])
			}
			unseen, err := bpe.Parse(name, data)
			require.NoError(t, err)
			for _, offsets := range []bool{true, false} {
				var want, got engine.Encoding
				opts := engine.EncodeOptions{Offsets: offsets}
				require.NoError(t, unseen.Encode(&want, b.String(), opts))
				require.NoError(t, seen.Encode(&got, b.String(), opts))
				require.Equal(t, want, got, "%s, round %d of seed %d, offsets %v", name, round, seed, offsets)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	tok := load(t, "tiny_bytelevel")
	text := strings.Repeat("if err != nil {\n\t\treturn fmt.Errorf(\"it's %d\", n)\n}\n", 50)
	var e engine.Encoding
	for range 20 { // every piece is cached by now
		e.Reset()
		require.NoError(t, tok.Encode(&e, text, engine.EncodeOptions{}))
	}
	got := testing.AllocsPerRun(100, func() {
		e.Reset()
		if err := tok.Encode(&e, text, engine.EncodeOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	require.Zero(t, got, "a call with room in its buffer allocates nothing")
}

// TestMarkedBeginnings runs the suite, texts in parts above all, with each way in which a SentencePiece style model
// marks beginnings.
func TestMarkedBeginnings(t *testing.T) {
	kit.OneGoroutine(t)
	for _, scheme := range []string{"first", "always", "never"} {
		t.Run(scheme, func(t *testing.T) {
			tok, err := bpe.Parse(scheme, kit.WithMetaspace(t, kit.Tokenizer(t, "tiny_spm"), scheme))
			require.NoError(t, err)
			keepsContract(t, tok, promises{})
		})
	}
}
