package pq

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/pqread"
)

// pageV2 returns an uncompressed version 2 page with two bytes of definition levels and two
// 32-bit values, whose header claims def bytes of levels and raw bytes in all.
func pageV2(raw, def byte) []byte {
	const i32 = 1<<4 | thriftI32
	return []byte{i32, 2 * dataPageV2, i32, 2 * raw, i32, 2 * 10, 5<<4 | thriftStruct, i32, 2 * 2, i32, 0, i32, 2 * 2, i32, 0, i32, 2 * def, i32, 0, 0, 0,
		2 << 1, 1, 5, 0, 0, 0, 6, 0, 0, 0}
}

func TestPageV2(t *testing.T) {
	for _, c := range []struct {
		raw, def byte
		want     string
	}{{10, 2, ""}, {10, 11, "ends before"}, {1, 2, "ends before"}, {9, 2, "says it holds 7 bytes"}, {11, 2, "says it holds 9 bytes"}, {10, 1, "ends before"}, {10, 0, "ends before"}} {
		data := oneChunk(t, Column{Name: "n", Kind: Int32, Nullable: true}, -1, 2, pageV2(c.raw, c.def))
		f, err := pqread.Open(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		got, err := f.Read(0, f.Leaves[0])
		if c.want != "" {
			require.ErrorContains(t, err, c.want, "%d bytes, %d of levels", c.raw, c.def)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, &pqread.Chunk{Ints: []int32{5, 6}, Nulls: []bool{false, false}}, got)
	}
}
