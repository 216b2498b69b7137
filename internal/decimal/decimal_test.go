package decimal_test

import (
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/decimal"
)

func TestDigit(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "7": 7, "٣": 3, "९": 9, "𝟘": 0, "𝟿": 9, "a": -1, "²": -1, "/": -1, ":": -1} {
		require.Equal(t, want, decimal.Digit([]rune(text)[0]), text)
	}
	for r := range rune(0x20000) { // there are no digits beyond
		if unicode.Is(unicode.Nd, r) != (decimal.Digit(r) >= 0) {
			t.Fatalf("%U is %d", r, decimal.Digit(r))
		}
	}
}
