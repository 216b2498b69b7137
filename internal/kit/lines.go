package kit

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines decodes a file with one JSON value per line, gzipped if its name ends in .gz. A file
// without lines fails the test.
func Lines[T any](t testing.TB, path string) iter.Seq[T] {
	return func(yield func(T) bool) {
		t.Helper()
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			r, err = gzip.NewReader(f)
			require.NoError(t, err)
		}
		n := 0
		for lines := bufio.NewReaderSize(r, 1<<20); ; n++ {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF && len(line) == 0 {
				break
			}
			if err != io.EOF {
				require.NoError(t, err)
			}
			var v T
			require.NoError(t, json.Unmarshal(line, &v), "line %d of %s", n+1, path)
			if !yield(v) {
				return
			}
		}
		require.Positive(t, n, path)
	}
}
