package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
)

// kept converts the demo dumps with --keep rule. It returns the rewards of the rows by
// group, and the summary.
func kept(t *testing.T, rule string, flags ...string) (map[string][]float64, summary) {
	out := t.TempDir()
	args := append([]string{"convert", "--keep", rule, "--model", modelDir(t, nil), "--out", out, "--json", filepath.Join("demo", "dumps")}, flags...)
	code, stdout, stderr := call(t, args...)
	require.Zero(t, code, stderr)
	var s summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	got := map[string][]float64{}
	f, err := export.Open(filepath.Join(out, "batch.parquet"))
	require.NoError(t, err)
	defer f.Close()
	for {
		row, err := f.Read()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if row.SampleIndex == 0 {
			got[row.Group] = append(got[row.Group], row.Reward)
		}
	}
	return got, s
}

// Rejected rollouts give no rows, with or without advantages, and are counted. Advantages
// of the others are computed over the whole group.
func TestKeep(t *testing.T) {
	kit.Long(t)
	all, whole := kept(t, "none", "--estimator", "none")
	for _, flags := range [][]string{{"--estimator", "none"}, {"--target", "slime"}} {
		solved, s := kept(t, "resolved", flags...)
		positive, _ := kept(t, "reward>0", flags...)
		require.Equal(t, solved, positive)
		best, _ := kept(t, "best", flags...)
		n := 0
		for group, rewards := range all {
			most := rewards[0]
			want := []float64(nil)
			for _, r := range rewards {
				most = max(most, r)
				if r > 0 {
					want = append(want, r)
				} else {
					n++
				}
			}
			require.Equal(t, want, solved[group])
			require.Equal(t, []float64{most}, best[group])
		}
		require.Positive(t, n)
		require.Equal(t, n, s.WithoutRows["rejected by its reward"])
		require.Equal(t, whole.Rollouts, s.Rollouts)
		if flags[0] == "--target" {
			require.NotZero(t, s.Batch.Advantage.Std, "compared with those that are rejected")
		}
	}
}

func TestKeepWithoutRewards(t *testing.T) {
	line := `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"id":"x"}`
	code, _, stderr := call(t, "convert", "--keep", "resolved", "--estimator", "none", "--model", modelDir(t, nil), "--out", t.TempDir(), dump(t, line))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "none of the 1 rollouts has a reward")
}
