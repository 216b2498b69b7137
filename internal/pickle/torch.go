package pickle

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxPickle returns the maximum decompressed size of a file's pickle: torch does not
// compress it, and tokens do not compress 64 times.
func maxPickle(fileSize int64) int64 { return max(16<<20, min(64*fileSize, 8<<30)) }

// Torch returns the value in a torch.save file, and the size of its pickle in bytes.
func Torch(r io.ReaderAt, size int64) (v any, bytes int, err error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, 0, fmt.Errorf("not a torch file: %w", err)
	}
	var entry *zip.File
	for _, f := range z.File {
		if strings.Count(f.Name, "/") == 1 && strings.HasSuffix(f.Name, "/data.pkl") {
			entry = f
		}
	}
	if entry == nil {
		return nil, 0, errors.New("not a torch file: it holds no data.pkl")
	}
	most := maxPickle(size)
	if entry.UncompressedSize64 > uint64(most) {
		return nil, 0, fmt.Errorf("the pickle has %d bytes, more than %d", entry.UncompressedSize64, most)
	}
	f, err := entry.Open()
	if err != nil {
		return nil, 0, fmt.Errorf("open data.pkl: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, 0, fmt.Errorf("read data.pkl: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, 0, fmt.Errorf("read data.pkl: %w", err)
	}
	v, err = Load(data)
	return v, len(data), err
}
