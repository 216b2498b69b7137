package traj_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/traj"
)

// For any pickle, reading terminates, executes no code and gives valid rollouts.
func FuzzPickles(f *testing.F) {
	for file, torch := range map[string]bool{"testdata/skyrl.pkl": false, "testdata/slime.pt": true} {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(torch, b)
		f.Add(torch, b[:len(b)/2])
	}
	f.Add(false, []byte("cposix\nsystem\nX\x04\x00\x00\x00exit\x85R."))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, torch bool, data []byte) {
		path := filepath.Join(dir, "x.pkl")
		if torch {
			path = filepath.Join(dir, "x.pt")
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))
		r, err := traj.Open([]string{path}, traj.Options{})
		require.NoError(t, err)
		n := 0
		for x, err := range r.All() {
			if err == nil {
				_ = x.Validate()
				require.LessOrEqual(t, len(x.Turns), len(data), "turns without bytes")
			}
			n++
		}
		require.LessOrEqual(t, n, 1+len(data), "records without bytes")
	})
}

// Every strict prefix is an error.
func TestPicklePrefixes(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"testdata/skyrl.pkl", "testdata/slime.pt"} {
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		for n := range whole {
			r, err := traj.Open([]string{write(t, dir, "a"+filepath.Ext(file), whole[:n])}, stop)
			if err == nil {
				_, err = first(t, r)
			}
			require.Error(t, err, "%s: the first %d of %d bytes", file, n, len(whole))
		}
	}
}
