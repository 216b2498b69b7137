package live_test

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/live"
)

// A blob that is asked for before it is durable waits for the disk, and nothing else of its rollout does.
func TestBlobBeforeItIsDurable(t *testing.T) {
	var full atomic.Bool
	j, err := live.OpenFaulty(t.TempDir(), live.JournalOptions{}, func(op string) error {
		if op == "write" && full.Load() {
			return syscall.ENOSPC
		}
		return nil
	})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1}})
	require.NoError(t, err)
	full.Store(true)
	ended := make(chan error, 1)
	go func() {
		ended <- c.End(t.Context(), live.Reply{Output: ids{2}, Logprobs: []float32{-1}, Blob: []byte("blob")})
	}()
	for callsOf(t, s)[0].State == live.StateRunning {
		time.Sleep(time.Millisecond)
	}
	blob := make(chan []byte, 1)
	go func() {
		b, err := s.Blob(c.ID())
		if err != nil {
			b = []byte(err.Error())
		}
		blob <- b
	}()
	time.Sleep(20 * time.Millisecond)
	others := make(chan error, 1)
	go func() {
		_ = callsOf(t, s)
		_ = rec.Stats()
		_, err := rec.Begin(t.Context(), live.Start{ID: "child", Parent: "a"})
		others <- err
	}()
	select {
	case err := <-others:
		require.ErrorIs(t, err, live.ErrUnavailable)
	case <-time.After(5 * time.Second):
		t.Error("the rollout is locked until the disk has room")
	}
	full.Store(false)
	require.Equal(t, "blob", string(<-blob))
	require.NoError(t, <-ended)
	require.NoError(t, j.Close())
}
