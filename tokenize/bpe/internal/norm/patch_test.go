package norm

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// TestPatches: a text with patches equals the text with explicit origins.
func TestPatches(t *testing.T) {
	u := uni.Load()
	parts := []string{"a", "plain words ", "e\u0301", "\u0301", "\u212b", "\ufb01", "\u1100\u1161\u11a8", "한", "你好", "a\u0323\u0307", "\u0344", "\n", "\U0001d15e", "é", "x\u0338y"}
	r := rand.New(rand.NewPCG(1, 2))
	patched := 0
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		text := b.String()
		form := Form{Compose: true, Compat: r.IntN(2) == 0}
		got, want := Text{Buf: []byte(text), Base: 7}, Text{Buf: []byte(text), Base: 7}
		want.align()
		require.NoError(t, form.Apply(u, &got))
		require.NoError(t, form.Apply(u, &want))
		require.Equal(t, string(want.Buf), string(got.Buf), "%q", text)
		if got.patches != nil {
			patched++
		}
		from := r.IntN(len(got.Buf))
		for from > 0 && got.Buf[from]&0xC0 == 0x80 {
			from--
		}
		part := got.Slice(from, len(got.Buf))
		for i := from; i < len(got.Buf); i++ {
			for j := i + 1; j <= len(got.Buf) && j < i+9; j++ {
				a, b := want.Range(i, j)
				a1, b1 := got.Range(i, j)
				require.Equal(t, [2]int{a, b}, [2]int{a1, b1}, "%q", got.Buf)
				a1, b1 = part.Range(i-from, j-from)
				require.Equal(t, [2]int{a, b}, [2]int{a1, b1}, "%q from %d", got.Buf, from)
				if at, ok := part.Unchanged(i-from, j-from); ok {
					require.Equal(t, string(got.Buf[i:j]), text[at-7:at-7+j-i], "%q", text)
				}
			}
		}
		got.align()
		require.Equal(t, want.Al, got.Al, "%q", got.Buf)
	}
	require.Positive(t, patched)
}
