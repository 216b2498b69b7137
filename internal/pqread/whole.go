package pqread

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Whole is the size of the longest beginning of a file that is a whole Parquet file,
// of one whose writer flushed it and was then stopped; size where there is none.
func Whole(r io.ReaderAt, size int64) int64 {
	const block = 1 << 20
	buf := make([]byte, block+len(magic)-1)
	for end := size; end > 0; end -= min(end, block) {
		from := max(0, end-block)
		part := buf[:min(size, end+int64(len(magic))-1)-from]
		if err := readAt(r, part, from); err != nil {
			return size
		}
		for i := bytes.LastIndex(part, []byte(magic)); i >= 0; i = bytes.LastIndex(part[:i], []byte(magic)) {
			if at := from + int64(i+len(magic)); footerAt(r, at) {
				return at
			}
		}
	}
	return size
}

// footerAt says whether a footer ends at the offset end.
func footerAt(r io.ReaderAt, end int64) bool {
	var n [4]byte
	if end < 12 || readAt(r, n[:], end-8) != nil || int64(binary.LittleEndian.Uint32(n[:])) > end-12 {
		return false
	}
	_, err := readFooter(r, end)
	return err == nil
}
