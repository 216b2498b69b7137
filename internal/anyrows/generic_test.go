package anyrows

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ids that are numbers stay what the file says, also those that no float64 tells apart.
func TestNumbersAsIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"input_ids":[1],"loss_mask":[0],"uid":1234567890123456781,"id":100000000}
{"input_ids":[1],"loss_mask":[0],"uid":1234567890123456782,"id":"x"}`), 0o600))
	r, err := Open(path)
	require.NoError(t, err)
	defer r.Close()
	for _, want := range [][2]string{{"1234567890123456781", "100000000"}, {"1234567890123456782", "x"}} {
		row, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, want, [2]string{row.Group, row.ID})
	}
}
