package live_test

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// TestManySessions bounds the memory of sessions of 50 calls, each of 100 new prompt ids and 100 sampled ones.
// TURNPACK_SESSIONS sets their number, default 40.
func TestManySessions(t *testing.T) {
	kit.Long(t)
	n, calls := 40, 50
	if s := os.Getenv("TURNPACK_SESSIONS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	j, err := live.OpenJournal(t.TempDir(), live.JournalOptions{})
	require.NoError(t, err)
	defer j.Close()
	r, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	ids := make(chan int)
	for range 256 {
		wg.Go(func() {
			for i := range ids {
				s, err := r.Begin(t.Context(), live.Start{ID: strconv.Itoa(i)})
				if err != nil {
					t.Error(err)
					return
				}
				var prompt []rollout.TokenID
				for k := range calls {
					for len(prompt) < 200*k+100 {
						prompt = append(prompt, rollout.TokenID(len(prompt)*7+i))
					}
					output, logprobs := make([]rollout.TokenID, 100), make([]float32, 100)
					for x := range output {
						output[x], logprobs[x] = rollout.TokenID(x*3+k), -0.12345*float32(x%7)
					}
					c, err := s.Begin(t.Context(), live.Request{Prompt: prompt})
					if err == nil {
						err = c.End(t.Context(), live.Reply{Output: output, Logprobs: logprobs, FinishReason: "stop"})
					}
					if err != nil {
						t.Error(err)
						return
					}
					prompt = append(prompt, output...)
				}
			}
		})
	}
	for i := range n {
		ids <- i
	}
	close(ids)
	wg.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d sessions of %d calls: %d MiB live, %d MiB from the system", n, calls, (after.HeapAlloc-before.HeapAlloc)>>20, after.Sys>>20)
	runtime.KeepAlive(r)
}

// Sessions read again from the journal are unchanged: the property tests hold when no session may stay in
// memory.
func TestCold(t *testing.T) {
	dir := t.TempDir()
	j, err := live.OpenJournal(dir, live.JournalOptions{})
	require.NoError(t, err)
	defer j.Close()
	r, err := live.New(live.Options{Journal: j, MaxMemory: 1})
	require.NoError(t, err)
	warm, err := live.New(live.Options{})
	require.NoError(t, err)
	newID := func(i, k int) string { return strconv.Itoa(i) + "." + strconv.Itoa(k) }
	play := func(r *live.Recorder, i, k int) {
		s, err := r.Begin(t.Context(), live.Start{ID: strconv.Itoa(i)})
		require.NoError(t, err)
		prompt := []rollout.TokenID{rollout.TokenID(i)}
		for n := range k {
			prompt = append(prompt, rollout.TokenID(100+n), rollout.TokenID(n))
		}
		c, err := s.Begin(t.Context(), live.Request{Prompt: prompt})
		require.NoError(t, err)
		require.NoError(t, c.End(t.Context(), live.Reply{ID: newID(i, k), Output: []rollout.TokenID{rollout.TokenID(100 + k)}, Logprobs: []float32{-1}, Blob: []byte{byte(k)}}))
	}
	for k := range 5 {
		for i := range 8 {
			play(r, i, k)
			play(warm, i, k)
		}
	}
	require.Equal(t, warm.Stats().Calls, r.Stats().Calls)
	for i := range 8 {
		a, ok := warm.Session(strconv.Itoa(i))
		require.True(t, ok)
		b, ok := r.Session(strconv.Itoa(i))
		require.True(t, ok)
		want, err := a.Rollout()
		require.NoError(t, err)
		got, err := b.Rollout()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Len(t, callsOf(t, b), 5)
		blob, err := b.Blob(callsOf(t, b)[3].ID)
		require.NoError(t, err)
		require.Equal(t, []byte{3}, blob)
	}
	require.Equal(t, warm.Stats().Tokens, r.Stats().Tokens)
	// A missing journal is reported, and no rollout is shortened.
	require.NoError(t, os.RemoveAll(dir))
	s, _ := r.Session("0")
	_, err = s.Rollout()
	require.Error(t, err)
}
