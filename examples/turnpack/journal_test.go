package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// The folder of a live journal converts like any dump: each sampled token is trained, and
// an open session has no outcome.
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

// A journal can be converted and viewed while a process writes to it, removes delivered
// segments and begins new ones.
func TestJournalThatIsWritten(t *testing.T) {
	dir, model := filepath.Join(t.TempDir(), "journal"), modelDir(t, nil)
	j, err := live.OpenJournal(dir, live.JournalOptions{SegmentBytes: 4 << 10})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	written, first := make(chan error), make(chan struct{})
	go func() { written <- write(ctx, rec, first) }()
	<-first
	for i := range 3 {
		out := t.TempDir()
		code, stdout, stderr := call(t, "convert", "--model", model, "--in", dir, "--out", filepath.Join(out, "b"))
		require.Equal(t, 0, code, stdout+stderr)
		require.NotContains(t, stderr, "damaged")
		page := filepath.Join(out, "page.html")
		code, stdout, stderr = call(t, "view", dir, "--model", model, "--out", page)
		require.Equal(t, 0, code, stdout+stderr)
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Contains(t, string(text), "journal", i)
	}
	stop()
	require.NoError(t, <-written)
	require.NoError(t, j.Close())
	require.Greater(t, j.Stats().Records, int64(100))
}

// write records rollouts and delivers most of them until ctx ends.
func write(ctx context.Context, rec *live.Recorder, first chan struct{}) error {
	for n := 0; ctx.Err() == nil || n < 40; n++ {
		id := strconv.Itoa(n)
		s, err := rec.Begin(context.Background(), live.Start{ID: id})
		if err != nil {
			return err
		}
		for prompt := []rollout.TokenID{1, 2, 3}; len(prompt) < 9; prompt = append(prompt, 5, 6, 7) {
			c, err := s.Begin(context.Background(), live.Request{Prompt: prompt, Sampling: &rollout.Sampling{Temperature: new(float32(1))}})
			if err == nil {
				err = c.End(context.Background(), live.Reply{Output: []rollout.TokenID{5, 6}, Logprobs: []float32{-1, -2}})
			}
			if err != nil {
				return err
			}
		}
		if n == 3 {
			close(first)
		}
		if n%8 == 0 {
			continue
		}
		if _, err = s.End(context.Background(), live.Ending{Outcome: rollout.Outcome{Resolved: new(true)}, Status: rollout.StatusCompleted}); err != nil {
			return err
		}
		if n%8 > 2 && n > 3 {
			if err := rec.Deliver(context.Background(), live.Batch{Key: id, Digest: "x", Sessions: []string{id}}); err != nil {
				return err
			}
		}
	}
	return nil
}
