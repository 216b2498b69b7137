package arrowfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// A codec is CompressionType of Message.fbs.
type codec int8

const (
	lz4Frame codec = iota
	zstdCodec
)

// A decompressor fills buffers of a known size. What it needs is made for the
// first buffer.
type decompressor struct {
	zstd *zstd.Decoder
	lz4  *lz4.Reader
}

// fill decompresses src into dst, which must become exactly full.
func (d *decompressor) fill(dst, src []byte, c codec) error {
	switch c {
	case lz4Frame:
		return d.fillLZ4(dst, src)
	case zstdCodec:
		return d.fillZstd(dst, src)
	}
	return fmt.Errorf("compression %d is not read", c)
}

func (d *decompressor) fillLZ4(dst, src []byte) error {
	if d.lz4 == nil {
		d.lz4 = lz4.NewReader(nil)
	}
	d.lz4.Reset(bytes.NewReader(src))
	if _, err := io.ReadFull(d.lz4, dst); err != nil {
		return err
	}
	if _, err := d.lz4.Read(make([]byte, 1)); err != io.EOF {
		return errors.New("it goes on")
	}
	return nil
}

func (d *decompressor) fillZstd(dst, src []byte) (err error) {
	if d.zstd == nil {
		if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)); err != nil {
			return err
		}
	}
	out, err := d.zstd.DecodeAll(src, dst[:0:len(dst)])
	if err == nil && len(out) != len(dst) {
		err = fmt.Errorf("it holds %d", len(out))
	}
	return err
}
