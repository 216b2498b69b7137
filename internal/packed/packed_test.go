package packed_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/packed"
)

func TestPacked(t *testing.T) {
	var text bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&text, "r%d g%d;", i, i%1250)
	}
	small := packed.Bytes(text.Bytes())
	require.Less(t, len(small), text.Len()/2)
	got, ok := packed.Read(small)
	require.True(t, ok)
	require.Equal(t, text.Bytes(), got)
	_, ok = packed.Read(small[:len(small)-1])
	require.False(t, ok, "cut off")

	require.Empty(t, packed.Bytes(nil))
	got, ok = packed.Read(nil)
	require.True(t, ok)
	require.Empty(t, got)
}
