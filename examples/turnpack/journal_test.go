package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// The folder of a live journal is converted as any dump: each sampled token is trained,
// and a session that did not end has no outcome.
func TestConvertJournal(t *testing.T) {
	dir := t.TempDir()
	j, err := live.OpenJournal(dir, live.JournalOptions{SegmentBytes: 1 << 10})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	for i, id := range []string{"r0", "r1", "open"} {
		s, err := rec.Begin(t.Context(), live.Start{ID: id, Group: "g", Index: i})
		require.NoError(t, err)
		prompt := []rollout.TokenID{1, 2, 3}
		for range 3 {
			c, err := s.Begin(t.Context(), live.Request{Prompt: prompt, Sampling: &rollout.Sampling{Temperature: new(float32(1))}})
			require.NoError(t, err)
			require.NoError(t, c.End(t.Context(), live.Reply{Output: []rollout.TokenID{5, 6}, Logprobs: []float32{-1, -2}}))
			prompt = append(prompt, 5, 6, 7)
		}
		if id != "open" {
			_, err = s.End(t.Context(), live.Ending{Outcome: rollout.Outcome{Resolved: new(i == 0)}, Status: rollout.StatusCompleted})
			require.NoError(t, err)
		}
	}
	require.NoError(t, j.Close())
	code, stdout, stderr := call(t, "convert", "--model", modelDir(t, nil), "--in", dir, "--out", filepath.Join(t.TempDir(), "b"))
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "3 turnpack-journal")
	require.Contains(t, stdout, "22, 12 of them trained")
	require.Contains(t, stdout, "4 exact")
	require.Contains(t, stdout, "1 unfinished")
}
