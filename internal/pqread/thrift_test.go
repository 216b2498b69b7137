package pqread

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func appendZigzag(dst []byte, n int32) []byte { return binary.AppendVarint(dst, int64(n)) }

// Later versions of the format may have unknown fields.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	strange := []byte{
		2<<4 | thriftFalse,                          // the size as a boolean
		1<<4 | thriftList, 2<<4 | thriftFalse, 1, 2, // the compressed size as a list
		2<<4 | thriftI64, 9, // the data page header as a number
		0<<4 | thriftTrue, 0xc8, 0x01, // field 100 is true
		1<<4 | thriftFalse,
		1<<4 | thriftByte, 0xff,
		1<<4 | thriftI16, 0x80, 0x01,
		1<<4 | thriftDouble, 1, 2, 3, 4, 5, 6, 7, 8,
		1<<4 | thriftBinary, 2, 0xff, 0xff,
		1<<4 | thriftList, 2<<4 | thriftTrue, 1, 2,
		1<<4 | thriftSet, 15<<4 | thriftBinary, 1, 1, 'x',
		1<<4 | thriftMap, 1, thriftBinary<<4 | thriftTrue, 1, 'k', 1,
		1<<4 | thriftMap, 0,
		1<<4 | thriftStruct, 2<<4 | thriftStruct, 0, 0,
		1<<4 | thriftUUID, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	}
	data := append(strange, 0<<4|thriftI32, 6, 0x7e, 0, 0xaa) // field 3, the compressed size
	c := compact{b: data}
	got := readHeader(&c)
	require.NoError(t, c.err)
	require.Equal(t, header{packed: 63}, got)
	require.Equal(t, []byte{0xaa}, c.b, "what follows a header is not its")
	for n := range len(data) - 1 {
		c := compact{b: data[:n]}
		readHeader(&c)
		require.Error(t, c.err, "the first %d bytes", n)
	}
	for name, data := range map[string][]byte{
		"type 14 is unknown":     {15<<4 | 14, 0},
		"is not a 32-bit number": {3<<4 | thriftI32, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0},
		"a size or count is -64": {3<<4 | thriftI32, 0x7f, 0},
	} {
		c := compact{b: data}
		readHeader(&c)
		require.ErrorContains(t, c.err, name)
	}
}
