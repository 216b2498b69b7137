package export

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// A record batch ends before its offsets overflow. Parquet has none.
func TestRecordBatchesFitTheirOffsets(t *testing.T) {
	index := -1
	row := func(id string, tokens int, metadata string) rollout.Sample {
		s := rollout.Sample{Status: rollout.StatusCompleted, Metadata: []byte(metadata)}
		s.Group, s.Rollout, s.IDs, s.Weight = "g", id, make([]int32, tokens), make([]float32, tokens)
		s.Weight[tokens-1] = 1
		index++
		s.RolloutIndex = index
		return rollout.FinishRows([]rollout.Sample{s})[0]
	}
	text := `{"x":"` + strings.Repeat("x", 32) + `"}`
	rows := []rollout.Sample{row("a", 2, text), row("b", 2, text), row("c", 2, text), row("d", 60, ""), row("e", 41, ""), row("f", 2, "")}
	for _, c := range []struct {
		format  string
		batches int
	}{{arrowFile, 3}, {arrowStream, 3}, {parquet, 1}} {
		var out bytes.Buffer
		w, err := NewWriter(&out, Options{Format: c.format})
		require.NoError(t, err)
		if w.most > 0 {
			w.most = 100
		}
		for _, s := range rows {
			require.NoError(t, w.Write(s))
		}
		require.NoError(t, w.Close())
		require.Equal(t, c.batches, w.Stats().RowGroups, c.format)
		r, err := NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		for _, want := range rows {
			got, err := r.Read()
			require.NoError(t, err)
			require.Equal(t, want.IDs, got.IDs)
			require.Equal(t, string(want.Metadata), string(got.Metadata))
		}
	}
	w, err := NewWriter(&bytes.Buffer{}, Options{Format: arrowFile})
	require.NoError(t, err)
	w.most = len(text) - 1
	err = w.Write(rows[0])
	require.ErrorIs(t, err, rollout.KindInput)
	require.EqualError(t, err, `rollout "a", metadata: found a text of 40 bytes, expected at most 39 in Arrow (shorten it)`)
}
