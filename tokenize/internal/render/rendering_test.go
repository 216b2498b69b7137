package render

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Texts agree as far as their bytes and the origin of these do.
func TestCommonPrefix(t *testing.T) {
	of := func(text string, fields ...Field) *Rendering { return &Rendering{Text: text, Fields: fields} }
	at := func(start, end int, message int32) Field {
		return Field{Start: start, End: end, Message: message, Part: PartContent}
	}
	for _, c := range []struct {
		a, b *Rendering
		want int
	}{
		{of("abc"), of("abd"), 2},
		{of("abc"), of("abc", at(1, 2, 0)), 1},
		{of("abc", at(1, 2, 0)), of("abc", at(1, 2, 0)), 3},
		{of("abc", at(1, 2, 0)), of("abc", at(1, 2, 1)), 1},
		{of("abc", at(1, 2, 0)), of("abc", at(1, 3, 0)), 2},
		{of("abc", at(2, 3, 0)), of("abd"), 2},
	} {
		require.Equal(t, c.want, CommonPrefix(c.a, c.b))
		require.Equal(t, c.want, CommonPrefix(c.b, c.a))
	}
	require.Equal(t, 3, CommonOrigin([]Field{at(0, 3, 0)}, []Field{at(1, 3, 0)}, 2, 3), "from byte 2 on")
}
