package traj_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/traj"
)

// A fingerprint changes with everything that a reader looks at, and with nothing else.
func TestFingerprint(t *testing.T) {
	write := func(text string, elem ...string) {
		path := filepath.Join(elem...)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	top := t.TempDir()
	dir := filepath.Join(top, "runs")
	write("{}", dir, "a", "x.json")
	write("[]", dir, "b.jsonl")
	take := func(path string) traj.Print {
		p, err := traj.Fingerprint(path, filepath.Join(dir, "out"))
		require.NoError(t, err)
		return p
	}
	first := take(dir)
	require.Equal(t, 2, first.Files)
	require.EqualValues(t, 4, first.Bytes)
	for _, row := range []struct {
		reason  string
		path    string
		changes bool
	}{
		{"a file that is no dump", "notes.txt", false},
		{"a hidden file", ".x.json", false},
		{"a file in the output folder", "out/manifest.json", false},
		{"a file beside a dump", "a/patch.diff", true},
		{"a file above a dump's folder", "../results.jsonl", true},
		{"a reward beside the folder of a trial", "verifier/reward.txt", true},
		{"a new dump", "c.json", true},
	} {
		before := take(dir)
		write("new", dir, row.path)
		require.Equal(t, row.changes, take(dir) != before, row.reason)
	}
	before := take(dir)
	write("[ ]", dir, "b.jsonl")
	require.NotEqual(t, before, take(dir), "other bytes")
	require.NoError(t, os.Rename(filepath.Join(dir, "c.json"), filepath.Join(dir, "d.json")))
	moved := take(dir)
	require.NoError(t, os.Rename(filepath.Join(dir, "d.json"), filepath.Join(dir, "c.json")))
	require.NotEqual(t, moved, take(dir), "another name")
	require.Equal(t, 1, take(filepath.Join(dir, "b.jsonl")).Files)
	require.Equal(t, 2, take(filepath.Join(dir, "[a-c]*.js*")).Files)
	_, err := traj.Fingerprint(filepath.Join(top, "none"), "")
	require.ErrorContains(t, err, "none")
}
