package bpe

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/tokenize/engine"
)

// TestLongTextsLeaveNoMoreMemoryThanShortOnes: the memory that a tokenizer keeps between calls is within the
// documented bound, whatever it encoded.
func TestLongTextsLeaveNoMoreMemoryThanShortOnes(t *testing.T) {
	held := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	texts := []string{strings.Repeat("the test fails 12 times. ", 100_000), strings.Repeat("ab", 1_000_000), strings.Repeat("é\u0301 한", 250_000)}
	for _, kind := range []string{"tiny_spm", "qwen3", "gemma3"} {
		tok, err := Parse(kind, kit.Tokenizer(t, kind))
		require.NoError(t, err)
		before := held()
		for _, text := range texts {
			require.NoError(t, tok.Encode(new(engine.Encoding), text, engine.EncodeOptions{Offsets: true}))
		}
		require.Less(t, held(), before+12<<20, kind)
		runtime.KeepAlive(tok)
	}
}
