package pqread

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// A codec is a page compression, CompressionCodec of parquet.thrift.
type codec int

const (
	uncompressed codec = iota
	snappyCodec
	gzipCodec
	lzoCodec
	brotliCodec
	hadoopLZ4Codec
	zstdCodec
	lz4Codec
)

// A decompressor fills buffers of a known size, so that no input can make it use more memory
// than that.
type decompressor struct {
	buf  []byte
	zstd Zstd
}

// page returns the size bytes that src decompresses to. They are valid until the next call.
func (d *decompressor) page(src []byte, size int, c codec) ([]byte, error) {
	dst := src
	if c != uncompressed {
		d.buf = slices.Grow(d.buf[:0], size)
		dst = d.buf[:size]
	}
	n, err := d.fill(dst, src, c)
	if err == nil && n != size {
		err = fmt.Errorf("it holds %d", n)
	}
	if err != nil {
		return nil, fmt.Errorf("a page that says it holds %d bytes: %w", size, err)
	}
	return dst, nil
}

// fill decompresses src into dst and returns the number of bytes.
func (d *decompressor) fill(dst, src []byte, c codec) (int, error) {
	if len(dst) == 0 && len(src) == 0 { // some writers leave pages of nulls empty
		return 0, nil
	}
	switch c {
	case uncompressed:
		return len(src), nil
	case snappyCodec:
		n, err := snappy.DecodedLen(src)
		if err == nil && n == len(dst) {
			_, err = snappy.Decode(dst, src)
		}
		return n, err
	case gzipCodec:
		z, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return 0, err
		}
		return FillAll(z, dst)
	case brotliCodec:
		return FillAll(brotli.NewReader(bytes.NewReader(src)), dst)
	case zstdCodec:
		return d.zstd.Fill(dst, src)
	case lz4Codec:
		return lz4.UncompressBlock(src, dst)
	}
	return 0, fmt.Errorf("compression %d is not read", c)
}

// Zstd fills buffers of a known size. The zero value is ready; the decoder is created on first
// use.
type Zstd struct{ decoder *zstd.Decoder }

// Fill decompresses src into dst and returns the number of bytes.
func (z *Zstd) Fill(dst, src []byte) (n int, err error) {
	if z.decoder == nil {
		if z.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)); err != nil {
			return 0, err
		}
	}
	out, err := z.decoder.DecodeAll(src, dst[:0:len(dst)])
	return len(out), err
}

// FillAll fills dst from r, which must end there.
func FillAll(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	switch more, err := r.Read(make([]byte, 1)); {
	case more > 0:
		return n, errors.New("it goes on")
	case err != io.EOF:
		return n, err
	}
	return n, nil
}
