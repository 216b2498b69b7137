package py

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/tokenize/chat/internal/value"
)

// A precision, a zero flag and a sign share the width; Python accepts one length modifier.
func TestPercentNumbers(t *testing.T) {
	l := &value.Limits{Bytes: 1 << 20, Items: 1 << 10, IntBytes: 1 << 10, Depth: 50, Work: 1 << 40, Memory: 1 << 40}
	for _, c := range []struct {
		format string
		n      int64
		want   string // "" = an error
	}{
		{"%08.3d", -7, "-0000007"},
		{"%8.3d", -7, "    -007"},
		{"%-8.3d|", -7, "-007    |"},
		{"%+.3i", 7, "+007"},
		{"%#.4x", 255, "0x00ff"},
		{"%#010X", 255, "0X000000FF"},
		{"%.1u", 123, "123"},
		{"%ld", 5, "5"},
		{"%lld", 5, ""},
		{"%.2f", 5, "5.00"},
	} {
		l.Err = nil
		got := Percent(l, value.Lit(c.format), value.NewInt(c.n))
		require.Equal(t, c.want == "", l.Err != nil, c.format)
		if l.Err == nil {
			require.Equal(t, c.want, got.S, c.format)
		}
	}
}
