package export_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// TestMillionRows writes TURNPACK_ROWS rows of about 700 tokens into one file
// and reads the peak resident memory of the process, which must stay under
// 500 MiB.
func TestMillionRows(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("TURNPACK_ROWS"))
	if n == 0 {
		t.Skip("SKIPPED: set TURNPACK_ROWS, for example to 1000000, to run this test")
	}
	rows := fixture(t, 1, 200)
	long := batch(1, 1)
	w, err := export.Create(t.TempDir()+"/a.parquet", export.Options{Columns: threeColumns})
	require.NoError(t, err)
	for i := 0; w.Stats().Rows < n; i++ {
		prefix := strconv.Itoa(i) + "/"
		for _, part := range [][]rollout.Sample{rows, long} {
			for _, s := range part {
				s.ID, s.Rollout, s.Group, s.Tokenizer, s.Template = "", prefix+s.Rollout, prefix+s.Group, "", ""
				require.NoError(t, w.Write(s))
			}
		}
	}
	require.NoError(t, w.Close())
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(peak)[0])
	require.NoError(t, err)
	t.Logf("%+v, peak resident memory %d MiB", w.Stats(), kib>>10)
	require.Less(t, kib>>10, 500)
}
