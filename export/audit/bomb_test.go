package audit_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export/audit"
)

// Lists shared between samples, pickles that expand and class names built from long texts take
// only memory in proportion to the file.
func TestPickleBombs(t *testing.T) {
	list := "X\x01\x00\x00\x00s](" + strings.Repeat("K\x01", 1<<16) + "eq\x00"
	sample := "}X\x06\x00\x00\x00tokensh\x00s"
	for want, pickle := range map[string]string{
		"longer as JSON than a pickle of": "}" + list + "s" + "X\x07\x00\x00\x00samples](" + strings.Repeat(sample, 1<<14) + "es.",
		"the pickle has":                  strings.Repeat("N", 17<<20),
		"the name of a class":             "X\x00\x00\x10\x00" + strings.Repeat("x", 1<<20) + "q\x00" + strings.Repeat("h\x00h\x00\x930", 1<<16),
		"no list of samples":              "}q\x00X\x07\x00\x00\x00samplesh\x00s.",
		"meant to hold":                   "}X\x07\x00\x00\x00samples]}q\x00X\x06\x00\x00\x00tokens]h\x00asas.",
	} {
		var buf bytes.Buffer
		z := zip.NewWriter(&buf)
		w, err := z.Create("archive/data.pkl")
		require.NoError(t, err)
		_, err = io.WriteString(w, pickle)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		path := filepath.Join(t.TempDir(), "bomb.pt")
		require.NoError(t, os.WriteFile(path, buf.Bytes(), 0o644))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = audit.Run(context.Background(), []string{path}, audit.Options{})
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, want)
		most := uint64(64 << 20)
		if strings.HasPrefix(want, "longer") {
			most = 600 << 20 // in total over all rows, of which one is in memory at a time
		}
		require.Less(t, after.TotalAlloc-before.TotalAlloc, most, want)
	}
}
