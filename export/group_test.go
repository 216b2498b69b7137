package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// small returns the rows of one group: two rollouts of two rows.
func small(group string) (rows []rollout.Sample) {
	for i := range 2 {
		var of []rollout.Sample
		for k := range 2 {
			s := rollout.Sample{Status: rollout.StatusCompleted, RolloutIndex: i, Reward: float64(i)}
			s.Group, s.Rollout = group, fmt.Sprint(group, "/", i)
			s.IDs, s.Weight = []int32{1, int32(i), int32(k), 9}, []float32{0, 0, 1, 1}
			of = append(of, s)
		}
		rows = append(rows, rollout.FinishRows(of)...)
	}
	return rows
}

func writeAll(t *testing.T, w *export.Writer, rows []rollout.Sample) {
	for _, s := range rows {
		require.NoError(t, w.Write(s))
	}
}

// After a refusal, the errors of later rows name those rows, not only the refused one.
func TestLaterRowsNameThemselves(t *testing.T) {
	w, err := export.NewWriter(&bytes.Buffer{}, export.Options{})
	require.NoError(t, err)
	bad := small("a")[0]
	bad.Weight = nil
	require.Error(t, w.Write(bad))
	err = w.Write(small("b")[0])
	located, _ := errors.AsType[*rollout.Error](err)
	require.Equal(t, "b/0", located.Where.Rollout)
	require.ErrorContains(t, err, "a/0")
	_, refused := errors.AsType[*export.RefusedError](err)
	require.True(t, refused)
	require.Error(t, w.Close())
}

// Close after Abort publishes nothing and returns ErrAborted, in any order of calls.
func TestCloseAfterAbort(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []string{"parquet", "arrow", "arrow-stream"} {
		w, err := export.Create(filepath.Join(dir, "a"), export.Options{Format: format})
		require.NoError(t, err)
		writeAll(t, w, small("a"))
		require.NoError(t, w.Abort())
		require.NoError(t, w.Abort())
		require.ErrorIs(t, w.Close(), export.ErrAborted)
		require.ErrorIs(t, w.Write(small("b")[0]), export.ErrClosed)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	w, err := export.Create(filepath.Join(dir, "a"), export.Options{})
	require.NoError(t, err)
	writeAll(t, w, small("a"))
	require.NoError(t, w.Close())
	require.NoError(t, w.Abort(), "what is published stays")
	require.FileExists(t, filepath.Join(dir, "a"))
	_, err = export.Create(filepath.Join(dir, "a"), export.Options{})
	require.ErrorIs(t, err, export.ErrExists)
}
