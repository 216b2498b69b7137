package pqread

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"runtime"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

func streamed(t *testing.T, data []byte, to func(io.Writer) io.WriteCloser) []byte {
	var buf bytes.Buffer
	w := to(&buf)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func zstdOf(t *testing.T, data []byte) []byte {
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return enc.EncodeAll(data, nil)
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// packedBy returns data in every supported compression.
func packedBy(t *testing.T, data []byte) map[codec][]byte {
	block := make([]byte, lz4.CompressBlockBound(len(data)))
	n, err := lz4.CompressBlock(data, block, nil)
	require.NoError(t, err)
	return map[codec][]byte{
		uncompressed: data, snappyCodec: snappy.Encode(nil, data), zstdCodec: zstdOf(t, data), lz4Codec: block[:n],
		gzipCodec:   streamed(t, data, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		brotliCodec: streamed(t, data, func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }),
	}
}

// A page must be exactly as long as its header says, in every compression.
func TestCodecs(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 1000)
	var d decompressor
	for c, packed := range packedBy(t, data) {
		got, err := d.page(packed, len(data), c)
		require.NoError(t, err, "codec %d", c)
		require.Equal(t, data, got, "codec %d", c)
		for _, size := range []int{0, 1, len(data) - 1, len(data) + 1} {
			_, err := d.page(packed, size, c)
			require.Error(t, err, "codec %d, %d bytes", c, size)
		}
		for _, n := range []int{0, 1, len(packed) / 2, len(packed) - 1} {
			_, err := d.page(packed[:n], len(data), c)
			require.Error(t, err, "codec %d, the first %d bytes", c, n)
		}
		for range 2 { // a bad page must not break the decompressor
			_, err = d.page(packed, len(data), c)
			require.NoError(t, err, "codec %d", c)
		}
	}
	before := allocated()
	_, err := d.page(binary.AppendUvarint(nil, 1<<30), 10, snappyCodec)
	require.Error(t, err)
	require.Less(t, allocated()-before, uint64(1<<20), "what a page says of itself allocates nothing")
	_, err = d.page(data, len(data), hadoopLZ4Codec)
	require.ErrorContains(t, err, "compression 5 is not read")
}

// pageOf returns a version 1 page of plain values. Sizes and counts must be at most 63.
func pageOf(values int, body []byte) []byte {
	const i32 = 1<<4 | thriftI32
	n := byte(2 * len(body))
	return append([]byte{i32, 0, i32, n, i32, n, 2<<4 | thriftStruct, i32, byte(2 * values), i32, 0, i32, 2 * byte(rle), i32, 2 * byte(rle), 0, 0}, body...)
}

// Faults of a chunk are reported.
func TestChunkFaults(t *testing.T) {
	values := []byte{1, 0, 0, 0, 2, 0, 0, 0}
	page := pageOf(2, values)
	head := page[:len(page)-len(values)]
	sum := crc32.ChecksumIEEE(values)
	// The checksum is field 4, so the header of the data page is the next field.
	checked := func(sum uint32) []byte {
		const dataHeader = 2<<4 | thriftStruct
		at := bytes.IndexByte(head, dataHeader)
		out := append(bytes.Clone(head[:at]), 1<<4|thriftI32)
		return append(append(appendZigzag(out, int32(sum)), 1<<4|thriftStruct), head[at+1:]...)
	}
	for _, c := range []struct {
		want   string
		head   []byte
		change func(*columnChunk)
	}{
		{"", head, nil},
		{"", checked(sum), nil},
		{"checksum differs", checked(sum + 1), nil},
		{"encrypted", head, func(c *columnChunk) { c.encrypted = true }},
		{"another file", head, func(c *columnChunk) { c.elsewhere = true }},
		{"outside the file", head, func(c *columnChunk) { c.size = 1 << 40 }},
		{"outside the file", head, func(c *columnChunk) { c.data = -1 }},
		{"compression 3 is not read", head, func(c *columnChunk) { c.codec = lzoCodec }},
		{"a page after 0 of 2 values: a structure ends", head[:5], func(c *columnChunk) { c.size = 5 }},
		{"end after 2 of 3", head, func(c *columnChunk) { c.values = 3 }},
		{"2 values follows 0 of 1", head, func(c *columnChunk) { c.values = 1 }},
	} {
		data := append(bytes.Clone(c.head), values...)
		f := &File{r: bytes.NewReader(data), size: int64(len(data)), Leaves: []Leaf{{Name: "n", Type: Int32}},
			foot: &footer{groups: []rowGroup{{rows: 2, columns: []columnChunk{{values: 2, size: int64(len(data))}}}}}}
		if c.change != nil {
			c.change(&f.foot.groups[0].columns[0])
		}
		got, err := f.Read(0, f.Leaves[0])
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []int32{1, 2}, got.Ints)
	}
}
