package live_test

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/live"
)

// A full disk holds up no caller: a session that is not in memory, and whose last record waits for space, is
// refused as new calls are, and the other sessions and the counts are answered.
func TestColdSessionOnAFullDisk(t *testing.T) {
	var full atomic.Bool
	j, err := live.OpenFaulty(t.TempDir(), live.JournalOptions{}, func(op string) error {
		if full.Load() && op == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j, MaxMemory: 1})
	require.NoError(t, err)
	cold, warm := begin(t, rec, live.Start{ID: "cold"}), begin(t, rec, live.Start{ID: "warm"})
	ask(t, cold, ids{1}, ids{2})
	ask(t, warm, ids{1}, ids{2})
	full.Store(true)
	_, err = rec.Begin(t.Context(), live.Start{ID: "child", Parent: "cold"})
	require.ErrorIs(t, err, live.ErrUnavailable)

	answered := make(chan error, 1)
	go func() {
		_, err := cold.Rollout()
		answered <- err
	}()
	select {
	case err := <-answered:
		require.ErrorIs(t, err, live.ErrUnavailable)
	case <-time.After(30 * time.Second):
		full.Store(false)
		t.Fatal("the session waits for the disk")
	}
	require.Equal(t, 2, rec.Stats().Open)
	full.Store(false)
	require.Eventually(t, func() bool { return j.Err() == nil }, time.Minute, time.Millisecond)
	ask(t, cold, ids{1, 2, 3}, ids{4})
	require.NoError(t, j.Close())
}
