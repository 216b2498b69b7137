package pq

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/metadata"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// Types of Thrift's compact protocol and one page type.
const (
	thriftI32, thriftI64, thriftBinary, thriftList, thriftStruct = 5, 6, 8, 9, 12
	dataPageV2                                                   = 3
)

// oneChunk returns a file of one column whose only chunk holds the given pages.
func oneChunk(t testing.TB, c Column, level int, values int, pages []byte) []byte {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, []Column{c}, level)
	require.NoError(t, err)
	rg := w.meta.AppendRowGroup()
	rg.SetNumRows(values)
	info := metadata.ChunkMetaInfo{NumValues: int64(values), DataPageOffset: w.out.N, IndexPageOffset: -1, CompressedSize: int64(len(pages))}
	require.NoError(t, rg.NextColumnChunk().Finish(info, false, false, metadata.EncodingStats{}, nil))
	require.NoError(t, rg.Finish(0, 0))
	_, err = w.out.Write(pages)
	require.NoError(t, err)
	require.NoError(t, w.Close(nil))
	return buf.Bytes()
}

// withFooter returns a file that holds only metadata.
func withFooter(data []byte) []byte {
	out := append([]byte(magic), data...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(data))), magic...)
}

func zstdOf(t *testing.T, data []byte) []byte {
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return enc.EncodeAll(data, nil)
}

// A few bytes can claim, or decompress to, any number of bytes or values. Reading must take
// memory in proportion to the file only.
func TestBombs(t *testing.T) {
	const much = 256 << 20
	ids, text := Column{Name: "ids", Kind: Int32}, Column{Name: "t", Kind: Text}
	page := func(raw, packed, values int, enc parquet.Encoding, body []byte) []byte {
		return append(pageHeader(nil, false, raw, packed, values, enc), body...)
	}
	zeros := zstdOf(t, make([]byte, much))
	// Each text is the previous one and a letter.
	long := append(deltas(0, 1, 1<<16), deltas(1, 0, 1<<16)...)
	long = append(long, strings.Repeat("x", 1<<16)...)
	children := []byte{1<<4 | thriftI32, 2, 1<<4 | thriftList, 1<<4 | thriftStruct, 4<<4 | thriftBinary, 1, 's', 1<<4 | thriftI32, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0,
		1<<4 | thriftI64, 0, 1<<4 | thriftList, thriftStruct, 0}
	nested := bytes.Repeat([]byte{1<<4 | thriftStruct}, 8<<20)
	for name, data := range map[string][]byte{
		"a zstd page of more than it says":  oneChunk(t, ids, 0, 1, page(4, len(zeros), 1, parquet.Encodings.Plain, zeros)),
		"a zstd page of 2 GiB":              oneChunk(t, ids, 0, 1, page(math.MaxInt32, len(zeros), 1, parquet.Encodings.Plain, zeros)),
		"a page of 2 GiB that is not there": oneChunk(t, ids, 0, 1, page(4, math.MaxInt32, 1, parquet.Encodings.Plain, nil)),
		"a page of 2 billion values":        oneChunk(t, ids, -1, 5, page(4, 4, math.MaxInt32, parquet.Encodings.Plain, make([]byte, 4))),
		"a chunk of 2 billion values":       oneChunk(t, ids, -1, math.MaxInt32, page(4, 4, math.MaxInt32, parquet.Encodings.RLEDict, make([]byte, 4))),
		"texts that repeat a long one":      oneChunk(t, text, -1, 1<<16, page(len(long), len(long), 1<<16, parquet.Encodings.DeltaByteArray, long)),
		"a list of 100 million in metadata": withFooter(append([]byte{4<<4 | thriftList, 15<<4 | thriftStruct}, 0x80, 0xc2, 0xd7, 0x2f)),
		"2 billion children in a schema":    withFooter(children),
		"structures inside structures":      withFooter(nested),
	} {
		before := allocated()
		require.Error(t, readAll(data), name)
		require.Less(t, allocated()-before, uint64(much/2), name)
	}
}

// deltas returns n values in DELTA_BINARY_PACKED, starting at first and increasing by more.
func deltas(first, more int64, n int) []byte {
	out := binary.AppendUvarint([]byte{128, 1, 4}, uint64(n)) // block size, miniblocks, number of values
	out = binary.AppendVarint(out, first)
	for range n / 128 {
		out = append(binary.AppendVarint(out, more), 0, 0, 0, 0)
	}
	return out
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
