package norm

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/internal/uni"
)

// TestSettled compares every character, alone and with neighbours, and random bytes with the normal form and with
// package utf8.
func TestSettled(t *testing.T) {
	u := uni.Load()
	r := rand.New(rand.NewPCG(3, 4))
	settledOnes := 0
	check := func(s []byte) {
		for _, form := range []Form{{Compose: true}, {Compose: true, Compat: true}, {}} {
			valid, settled := form.Settled(u, s)
			if valid != utf8.Valid(s) {
				require.Equal(t, utf8.Valid(s), valid, "%q", s)
			}
			if !settled {
				continue
			}
			settledOnes++
			if chars := form.chars(u, nil, s, 0); !same(chars, s) {
				require.Fail(t, "settled text changes", "%q under %v becomes %v", s, form, chars)
			}
		}
	}
	for c := range rune(utf8.MaxRune + 1) {
		check(utf8.AppendRune(nil, c))
		check(utf8.AppendRune([]byte("a"), c))
		check(append(utf8.AppendRune(nil, c), "가\u0301"...))
	}
	require.Greater(t, settledOnes, 1_000_000)
	leads := []byte{'a', 0x80, 0xBF, 0xC0, 0xC3, 0xCC, 0xDF, 0xE0, 0xE1, 0xE3, 0xED, 0xEF, 0xF0, 0xF4, 0xFF, 0x9F, 0xA0}
	for range 300_000 {
		s := make([]byte, 1+r.IntN(12))
		for i := range s {
			s[i] = leads[r.IntN(len(leads))]
		}
		check(s)
	}
}
