package pytext

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The expected texts are those of CPython 3.11.
func TestReprs(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", 1e-4: "0.0001", 9.999999999999999e-05: "9.999999999999999e-05", 1e15: "1000000000000000.0",
		1e16: "1e+16", 9999999999999998: "9999999999999998.0", -1e22: "-1e+22", 1e-7: "1e-07", 5e-324: "5e-324", 0.1: "0.1",
		math.Inf(1): "inf", math.Inf(-1): "-inf",
	} {
		require.Equal(t, want, Float(f))
	}
	require.Equal(t, "nan", Float(math.NaN()))
	require.Equal(t, "-0.0", Float(math.Copysign(0, -1)))
	for s, want := range map[string]string{
		"": "''", "it's": `"it's"`, `it's "x"`: `'it\'s "x"'`, "a\n\r\t\\\x00\x7f": `'a\n\r\t\\\x00\x7f'`, "é\u00a0\u200b😀\U000e0001": `'é\xa0\u200b😀\U000e0001'`,
	} {
		require.Equal(t, want, Quote(s))
	}
}

func TestLineEnds(t *testing.T) {
	var ends []rune
	for r := range rune(0x10000) {
		if IsLineEnd(r) {
			ends = append(ends, r)
		}
	}
	require.Equal(t, []rune{'\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029}, ends)
}
