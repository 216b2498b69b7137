package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
)

// A folder of training runs as it is: what was graded has a signed reward, what the
// infrastructure broke has none, and the table says which and why.
func TestConvertTrainingRuns(t *testing.T) {
	dir := filepath.Join(kit.Dir(t, "data", "trajectories"), "openclaw-rl")
	in := t.TempDir()
	runs, err := filepath.Glob(filepath.Join(dir, "train-*"))
	require.NoError(t, err)
	for _, run := range runs {
		require.NoError(t, os.CopyFS(filepath.Join(in, filepath.Base(run)), os.DirFS(run)))
	}
	out := t.TempDir()
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", in, "--out", out)
	require.Zero(t, code, stderr)
	for _, part := range []string{
		"outcomes               4 infra_error, 1 apply_failed, 1 no_patch, 1 resolved, 1 tests_timeout, 1 unresolved",
		"status                 4 completed, 4 failed, 1 truncated",
		"1 excluded: infrastructure failure: allocate_failed", "1 excluded: infrastructure failure: diff_failed",
		"1 excluded: infrastructure failure: evaluate_failed", "1 excluded: infrastructure failure: llm_failed",
	} {
		require.Contains(t, stdout, part)
	}
	rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	rewards := map[float64]int{}
	for _, row := range rows {
		rewards[row.Reward]++
	}
	require.Equal(t, map[float64]int{1: 1, -1: 4}, rewards)
}
