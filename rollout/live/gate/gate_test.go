package gate_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
)

// callsOf returns the calls of a session.
func callsOf(t testing.TB, s *live.Session) []live.CallInfo {
	t.Helper()
	calls, err := s.Calls()
	require.NoError(t, err)
	return calls
}

func Example() {
	g, err := gate.New(gate.Options{MaxCalls: 8})
	if err != nil {
		panic(err)
	}
	leave, err := g.Enter(context.Background(), "engine", "task-7#0")
	if err != nil {
		panic(err)
	}
	leave()
	if err := g.Pause(context.Background(), "reject"); err != nil {
		panic(err)
	}
	_, err = g.Enter(context.Background(), "engine", "task-7#0")
	fmt.Println(gate.Answer(err))
	fmt.Println(err)
	// Output:
	// 429 2
	// calls are paused while the weights change (ask again later)
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := gate.New(gate.Options{MaxCalls: 2, MaxPerSession: 1, MaxWaiting: 2})
		require.NoError(t, err)
		ctx := t.Context()
		a, err := g.Enter(ctx, "e", "a")
		require.NoError(t, err)
		var order []string
		var mu sync.Mutex
		for _, s := range []string{"a", "b"} {
			go func() {
				leave, err := g.Enter(ctx, "e", s)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, s)
				mu.Unlock()
				if s == "b" {
					time.Sleep(time.Minute)
				}
				leave()
				leave() // a repeated leave has no effect
			}()
			synctest.Wait()
		}
		require.Equal(t, []string{"b"}, order, "the second call of a session waits, another session does not")
		go g.Enter(ctx, "e", "c")
		synctest.Wait()
		_, err = g.Enter(ctx, "e", "d")
		require.ErrorContains(t, err, "calls wait, at most")
		require.ErrorIs(t, err, rollout.KindLimit)
		status, after := gate.Answer(err)
		require.Equal(t, []any{429, "2"}, []any{status, after})
		a()
		synctest.Wait()
		require.Equal(t, []string{"b", "a"}, order)
		other, err := g.Enter(ctx, "other engine", "d")
		require.NoError(t, err)
		other()
		time.Sleep(2 * time.Minute)
		s := g.Stats()
		require.Equal(t, 1, s.Running, "c, which never leaves")
		require.Equal(t, map[string]int{"e": 1}, s.Engines)
		require.Equal(t, int64(1), s.Refused["waiting"])
	})
}

func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		ctx := t.Context()
		running, err := g.Enter(ctx, "e", "a")
		require.NoError(t, err)
		require.NoError(t, g.Pause(ctx, "hold"))
		var in atomic.Int32
		enter := func() {
			if leave, err := g.Enter(ctx, "e", "b"); err == nil {
				in.Add(1)
				leave()
			}
		}
		go enter()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = g.Enter(short, "e", "c")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, in.Load())
		require.NoError(t, g.Session(), "a session may begin, its call waits")

		finished := make(chan error)
		go func() { finished <- g.Pause(ctx, "finish") }()
		synctest.Wait()
		select {
		case <-finished:
			t.Fatal("a call runs")
		default:
		}
		running()
		require.NoError(t, <-finished)
		require.Zero(t, in.Load())
		require.NoError(t, g.SetVersion(7))
		g.Resume()
		synctest.Wait()
		require.Equal(t, int32(1), in.Load())
		require.Equal(t, int32(7), *g.Version())

		require.NoError(t, g.Pause(ctx, "hold"))
		held := make(chan error)
		go func() {
			_, err := g.Enter(ctx, "e", "d")
			held <- err
		}()
		synctest.Wait()
		require.NoError(t, g.Pause(ctx, "reject"))
		status, after := gate.Answer(<-held)
		require.Equal(t, 429, status)
		require.Equal(t, "2", after)
		require.Error(t, g.Session())
		require.Error(t, g.Pause(ctx, "stop"))
		require.Error(t, g.SetVersion(-1))
		require.Zero(t, g.Stats().Waiting)
	})
}

// Undelivered groups stop new sessions, while running sessions continue.
func TestFull(t *testing.T) {
	g, err := gate.New(gate.Options{Full: func() string { return "4 groups wait for the trainer" }})
	require.NoError(t, err)
	require.ErrorContains(t, g.Session(), "4 groups wait")
	leave, err := g.Enter(t.Context(), "e", "running")
	require.NoError(t, err)
	leave()
}

// A rollout at its cap gets no call, and reports the cap after a restart too.
func TestCaps(t *testing.T) {
	dir := t.TempDir()
	open := func() (*live.Recorder, func()) {
		j, err := live.OpenJournal(dir, live.JournalOptions{})
		require.NoError(t, err)
		r, err := live.New(live.Options{Journal: j})
		require.NoError(t, err)
		return r, func() { require.NoError(t, j.Close()) }
	}
	r, stop := open()
	g, err := gate.New(gate.Options{Caps: gate.Caps{Turns: 2, Tokens: 100}})
	require.NoError(t, err)
	ctx := t.Context()
	s, err := r.Begin(ctx, live.Start{ID: "a"})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, g.Turn(ctx, s))
		c, err := s.Begin(ctx, live.Request{Prompt: []rollout.TokenID{1}})
		require.NoError(t, err)
		require.NoError(t, c.End(ctx, live.Reply{Output: []rollout.TokenID{2}, Logprobs: []float32{-1}}))
	}
	require.Empty(t, gate.Truncated(callsOf(t, s)), "it may end by itself")
	for range 2 {
		err = g.Turn(ctx, s)
		require.ErrorContains(t, err, "2 turns")
		status, after := gate.Answer(err)
		require.Equal(t, 400, status, "asking again changes nothing")
		require.Empty(t, after)
	}
	require.Len(t, callsOf(t, s), 3)
	stop()
	r, stop = open()
	defer stop()
	s, ok := r.Session("a")
	require.True(t, ok)
	require.Equal(t, "2 turns", gate.Truncated(callsOf(t, s)))
	got, err := s.Rollout()
	require.NoError(t, err)
	require.Len(t, got.Turns, 2)
}

func TestValidate(t *testing.T) {
	_, err := gate.New(gate.Options{MaxCalls: -1, Caps: gate.Caps{Time: -1}})
	require.ErrorContains(t, err, "MaxCalls")
	require.ErrorContains(t, err, "Caps.Time")
}

// Calls that a pause stopped leave, and are admitted again before waiting calls, whatever the limits and
// policies meanwhile.
func TestContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := gate.New(gate.Options{MaxCalls: 1, MaxWaiting: 1})
		require.NoError(t, err)
		ctx := t.Context()
		leave, err := g.Enter(ctx, "e", "a")
		require.NoError(t, err)
		stop := g.Stop()
		paused, order := make(chan error), make(chan string, 2)
		go func() { paused <- g.Pause(ctx, "continue") }()
		<-stop
		go func() {
			if leave, err := g.Enter(ctx, "e", "b"); err == nil {
				order <- "b"
				leave()
			}
		}()
		synctest.Wait()
		leave()
		require.NoError(t, <-paused)
		<-g.Stop()
		go func() {
			leave, err := g.Again(ctx, "e", "a")
			if err == nil {
				order <- "a"
				leave()
			}
		}()
		synctest.Wait()
		require.Equal(t, 2, g.Stats().Waiting)
		require.NoError(t, g.Pause(ctx, "hold"))
		select {
		case <-g.Stop():
			t.Fatal("nothing is to stop")
		default:
		}
		g.Resume()
		require.Equal(t, "a", <-order)
		require.Equal(t, "b", <-order)

		require.NoError(t, g.Pause(ctx, "hold"))
		go func() {
			if _, err := g.Again(ctx, "e", "a"); err == nil {
				order <- "a"
			}
		}()
		synctest.Wait()
		require.NoError(t, g.Pause(ctx, "reject"))
		require.Equal(t, 1, g.Stats().Waiting)
		g.Resume()
		require.Equal(t, "a", <-order)
	})
}
