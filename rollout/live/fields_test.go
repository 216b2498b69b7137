package live_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// callsOf returns the calls of a session.
func callsOf(t testing.TB, s *live.Session) []live.CallInfo {
	t.Helper()
	calls, err := s.Calls()
	require.NoError(t, err)
	return calls
}

// All fields of a call are recorded and survive a restart.
func TestRecordOfACall(t *testing.T) {
	dir := t.TempDir()
	rec, j := recorder(t, dir, live.JournalOptions{}, live.Options{})
	parent := begin(t, rec, live.Start{ID: "p", Group: "g"})
	tool := rollout.Tool(`{"type":"function","function":{"name":"run","parameters":{}}}`)
	kwargs := map[string]json.RawMessage{"enable_thinking": json.RawMessage("true")}
	before, err := parent.Begin(t.Context(), live.Request{Prompt: ids{1, 2}, Tools: []rollout.Tool{tool}, TemplateKwargs: kwargs})
	require.NoError(t, err)
	require.NoError(t, before.End(t.Context(), live.Reply{Output: ids{3}, Logprobs: []float32{-1}}))
	s := begin(t, rec, live.Start{ID: "s", Parent: "p", Agent: "reviewer"})
	first, err := s.Begin(t.Context(), live.Request{Prompt: ids{9}})
	require.NoError(t, err)
	require.NoError(t, first.Abort(t.Context(), "the engine was gone"))
	sampling := &rollout.Sampling{Temperature: new(float32(0.5)), TopP: new(float32(0.9)), MinP: new(float32(0.1)), TopK: new(int32(20)), Seed: new(int64(7))}
	c, err := s.Begin(t.Context(), live.Request{Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}}, Tools: []rollout.Tool{tool},
		TemplateKwargs: kwargs, Sampling: sampling, Agent: "critic", Dialect: "chat", Engine: "http://e", Settings: json.RawMessage(`{"user":"u"}`), Replaces: first.ID()})
	require.NoError(t, err)
	require.NoError(t, c.Prompt(ids{1, 2, 3, 4}))
	require.NoError(t, c.Append(ids{5, 6}, []float32{-0.5, -0.25}, new(int32(7))))
	require.NoError(t, c.Append(ids{8}, []float32{-1}, new(int32(8))))
	require.NoError(t, c.End(t.Context(), live.Reply{ID: "chatcmpl-1", Message: &rollout.Message{Content: "yes", Reasoning: "hm"}, FinishReason: "stop", StopString: "END",
		Usage: live.Usage{PromptTokens: 4, CompletionTokens: 3}, Blob: []byte("experts")}))
	require.NoError(t, s.Mark(t.Context(), c.ID(), live.StateUnseen, "the client was gone"))
	require.Contains(t, callsOf(t, s)[2].Began.String(), "m=+", "in this process times do not jump")
	for range 2 {
		calls := callsOf(t, s)
		require.Len(t, calls, 3)
		got := calls[2]
		require.WithinDuration(t, time.Now(), got.Began, time.Hour)
		require.Positive(t, got.First)
		require.GreaterOrEqual(t, got.Took, got.First)
		got.Began, got.First, got.Took = time.Time{}, 0, 0
		require.Equal(t, live.CallInfo{ID: c.ID(), Session: "s", Agent: "critic", Attempt: 1, Replaces: first.ID(), Dialect: "chat", Engine: "http://e", State: live.StateUnseen, Why: "the client was gone",
			PromptTokens: 4, Kept: 3, Join: "extends", Base: calls[0].ID, OutputTokens: 3, BlobBytes: 7, Usage: live.Usage{PromptTokens: 4, CompletionTokens: 3}, Finish: "stop", Version: new(int32(7)),
			Settings: json.RawMessage(`{"user":"u"}`)}, got)
		require.Equal(t, live.StateSuperseded, calls[1].State)
		require.Equal(t, "p", s.Parent())
		blob, err := s.Blob(c.ID())
		require.NoError(t, err)
		require.Equal(t, "experts", string(blob))
		r, err := s.Rollout()
		require.NoError(t, err)
		require.Len(t, r.Turns, 2)
		turn := r.Turns[1]
		require.Equal(t, ids{5, 6, 8}, ids(turn.Output))
		require.Equal(t, []float32{-0.5, -0.25, -1}, turn.Logprobs)
		require.Equal(t, []rollout.VersionRun{{From: 0, Version: 7}, {From: 2, Version: 8}}, turn.Versions)
		require.Equal(t, rollout.PromptIDs{Base: 1, Keep: 3, Add: ids{4}}, turn.Prompt)
		require.Equal(t, []string{"chatcmpl-1", "stop", "END", "critic"}, []string{turn.ID, turn.FinishReason, turn.StopString, turn.Agent})
		require.Equal(t, sampling, turn.Sampling)
		require.Equal(t, "unseen: the client was gone", turn.Incomplete, "nobody went on from it")
		require.Equal(t, "hm", r.Messages[turn.Message].Reasoning)
		require.JSONEq(t, string(tool), string(r.Tools[0]))
		require.Equal(t, "true", string(r.TemplateKwargs["enable_thinking"]))
		require.NoError(t, j.Close())
		rec, j = recorder(t, dir, live.JournalOptions{}, live.Options{})
		s, _ = rec.Session("s")
	}
}

// The intent and the end of a call are durable before End returns, with one fsync of its own, or with one
// shared by the calls that arrived during another fsync.
func TestSharedSyncs(t *testing.T) {
	var syncs atomic.Int64
	held := make(chan struct{})
	var hold atomic.Bool
	j, err := live.OpenFaulty(t.TempDir(), live.JournalOptions{}, func(op string) error {
		if op == "sync" {
			syncs.Add(1)
			if hold.Load() {
				<-held
			}
		}
		return nil
	})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	before := syncs.Load()
	for range 3 {
		ask(t, s, ids{1}, ids{2})
	}
	alone := syncs.Load() - before
	require.GreaterOrEqual(t, alone, int64(3), "each end has its own")
	require.LessOrEqual(t, alone, int64(7), "where more than 5 ms are between them, with those of the session and of each intent")
	before = syncs.Load()
	hold.Store(true)
	const n = 32
	var wg sync.WaitGroup
	records := j.Stats().Records
	for range n {
		wg.Go(func() {
			c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1}})
			if err == nil {
				err = c.End(t.Context(), live.Reply{Output: ids{2}, Logprobs: []float32{-1}})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for j.Stats().Records < records+2*n {
		time.Sleep(time.Millisecond)
	}
	hold.Store(false)
	close(held)
	wg.Wait()
	require.Less(t, syncs.Load()-before, int64(n), "they share")
	require.Positive(t, syncs.Load()-before)
	require.NoError(t, j.Close())
}

// Begin returns after its record is in the file, whatever the disk does, so that a killed process keeps it. It
// is durable soon, even if no call ends.
func TestBeginIsWritten(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	var syncs atomic.Int64
	held := make(chan struct{})
	j, err := live.OpenFaulty(dir, live.JournalOptions{}, func(op string) error {
		if op == "sync" && syncs.Add(1) > 1 {
			<-held
		}
		return nil
	})
	require.NoError(t, err)
	rec, err := live.New(live.Options{Journal: j})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1}, Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}}})
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	for syncs.Load() < 2 { // although nothing ended
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- c.End(t.Context(), live.Reply{Output: ids{2}, Logprobs: []float32{-1}})
	}()
	for j.Stats().Records < 3 {
		time.Sleep(time.Millisecond)
	}
	require.Positive(t, j.Stats().Queued)
	require.Empty(t, ended, "its client must not be told")
	close(held)
	require.NoError(t, <-ended)
	require.Zero(t, j.Stats().Queued)
	require.NoError(t, j.Close())

	require.NoError(t, os.RemoveAll(filepath.Join(killed, ".lock")))
	rec, _ = recorder(t, killed, live.JournalOptions{}, live.Options{})
	s, ok := rec.Session("a")
	require.True(t, ok)
	require.Len(t, callsOf(t, s), 1)
	require.Equal(t, c.ID(), callsOf(t, s)[0].ID)
}

// Log probabilities have the limit of ids, and their excess is not told as that of ids.
func TestLogprobsAreBounded(t *testing.T) {
	rec, err := live.New(live.Options{MaxTokens: 100})
	require.NoError(t, err)
	for _, each := range []int{101, 40} {
		s := begin(t, rec, live.Start{})
		c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1}})
		require.NoError(t, err)
		n := 0
		for err = nil; err == nil && n <= 200; n += each {
			err = c.Append(nil, make([]float32, each), nil)
		}
		require.ErrorIs(t, err, rollout.KindLimit)
		require.ErrorContains(t, err, fmt.Sprintf("MaxTokens: the call has %d log probabilities, at most 100 are allowed", n))
	}
}
