package arrowfile

import (
	"bytes"
	"fmt"

	"github.com/pierrec/lz4/v4"

	"github.com/turnpack/turnpack/internal/pqread"
)

// A codec is a buffer compression, CompressionType of Message.fbs.
type codec int8

const (
	lz4Frame codec = iota
	zstdCodec
)

// A decompressor fills buffers of a known size. Its decoders are created on first use.
type decompressor struct {
	zstd pqread.Zstd
	lz4  *lz4.Reader
}

// fill decompresses src into dst, which it must fill exactly.
func (d *decompressor) fill(dst, src []byte, c codec) error {
	var n int
	var err error
	switch c {
	case lz4Frame:
		if d.lz4 == nil {
			d.lz4 = lz4.NewReader(nil)
		}
		d.lz4.Reset(bytes.NewReader(src))
		n, err = pqread.FillAll(d.lz4, dst)
	case zstdCodec:
		n, err = d.zstd.Fill(dst, src)
	default:
		return fmt.Errorf("compression %d is not read", c)
	}
	if err == nil && n != len(dst) {
		err = fmt.Errorf("it holds %d", n)
	}
	return err
}
