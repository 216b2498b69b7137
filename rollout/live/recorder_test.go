package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// A rollout of 200 steps, whose prompts have 17 million ids in total, takes 1.4 MB: its 175,000 distinct ids
// and 87,000 log probabilities, and little else.
func TestMemoryIsDistinctIDs(t *testing.T) {
	kit.OneGoroutine(t)
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	func() {
		prompt := make(ids, 0, 200_000)
		for step := range 200 {
			for range 438 {
				prompt = append(prompt, rollout.TokenID(len(prompt)*2654435761>>8&0x1ffff))
			}
			output := make(ids, 437)
			for k := range output {
				output[k] = rollout.TokenID(step*1000 + k)
			}
			ask(t, s, prompt, output)
			prompt = append(prompt, output...)
		}
	}()
	grown := heap() - before
	calls := callsOf(t, s)
	require.Len(t, calls, 200)
	last := calls[199]
	require.Greater(t, last.PromptTokens+last.OutputTokens, 174_000)
	require.Equal(t, last.PromptTokens-438, last.Kept)
	t.Logf("%d bytes", grown)
	require.Less(t, grown, int64(1_400_000))
	runtime.KeepAlive(rec)
}

// became returns the state of a call and the reason for it.
func became(s *live.Session, c *live.Call) (state live.State, why string) {
	calls, _ := s.Calls() // without them the state is none
	for _, x := range calls {
		if x.ID == c.ID() {
			state, why = x.State, x.Why
		}
	}
	return state, why
}

// Messages are stored once, however often requests repeat them; a turn's context is what its request contained.
func TestMessages(t *testing.T) {
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	say := func(role rollout.Role, text string) rollout.Message {
		return rollout.Message{Role: role, Content: text}
	}
	call := func(reply string, messages ...rollout.Message) {
		c, err := s.Begin(t.Context(), live.Request{Messages: messages, Tools: []rollout.Tool{json.RawMessage(`{"name": "bash"}`)}})
		require.NoError(t, err)
		m := rollout.Message{Role: rollout.RoleAssistant, Content: reply, Reasoning: "hm",
			ToolCalls: []rollout.ToolCall{{ID: "c1", Name: "bash", Arguments: `{"a": 1}`}}}
		require.NoError(t, c.End(t.Context(), live.Reply{Message: &m, Prompt: ids{1}, Output: ids{2}, Logprobs: []float32{-1}}))
	}
	user, system := say(rollout.RoleUser, "do"), say(rollout.RoleSystem, "be")
	shown := rollout.Message{Role: rollout.RoleAssistant, Parts: []rollout.Part{{Type: "text", Text: "first", Raw: json.RawMessage(`{"type":"text","text":"first"}`)}}, Content: "first",
		ToolCalls: []rollout.ToolCall{{ID: "c1", Name: "bash", Arguments: `{"a": 1}`}}}
	result := rollout.Message{Role: rollout.RoleTool, ToolCallID: "c1", Content: "out"}
	call("first", system, user)
	call("second", system, user, shown, result)
	call("third", system, say(rollout.RoleUser, "do, in short"))
	r, err := s.Rollout()
	require.NoError(t, err)
	require.NoError(t, r.Validate())
	var texts []string
	for _, m := range r.Messages {
		texts = append(texts, m.Content)
	}
	require.Equal(t, []string{"be", "do", "first", "out", "second", "do, in short", "third"}, texts)
	require.Nil(t, r.Turns[0].Context.Parts, "the plain history")
	parts := r.Turns[1].Context.Parts
	require.Len(t, parts, 3)
	require.Empty(t, parts[1].Message.Reasoning, "the client does not repeat the reasoning")
	require.Equal(t, []rollout.ContextPart{{From: 0, To: 1}, {From: 5, To: 6}}, r.Turns[2].Context.Parts)
	require.Len(t, r.Tools, 1)
	for _, turn := range r.Turns {
		require.Equal(t, rollout.SampledByPolicy, r.Messages[turn.Message].Sampled)
		require.False(t, turn.Context.Unknown)
	}
	c, err := s.Begin(t.Context(), live.Request{Messages: []rollout.Message{user}, Tools: []rollout.Tool{json.RawMessage(`{"name":"other"}`)}})
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), live.Reply{Prompt: ids{1}, Output: ids{2}, Logprobs: []float32{-1}}))
	r, err = s.Rollout()
	require.NoError(t, err)
	require.True(t, r.Turns[3].Context.Unknown)
	require.Equal(t, "tools_differ", r.Notes[0].Code)
}

// A broken reply is trained if a prompt continues all of it, but not if the retry's reply begins with the same
// ids and the prompt has the rest as other ids.
func TestBrokenRepliesThatARetryRepeats(t *testing.T) {
	for _, retried := range []bool{false, true} {
		rec, err := live.New(live.Options{})
		require.NoError(t, err)
		s := begin(t, rec, live.Start{ID: "a"})
		broke, err := s.Begin(t.Context(), live.Request{Prompt: ids{1, 2}})
		require.NoError(t, err)
		require.NoError(t, broke.Append(ids{10, 11}, []float32{-1, -1}, nil))
		require.NoError(t, broke.Abort(t.Context(), "the stream was cut"))
		if retried {
			again, err := s.Begin(t.Context(), live.Request{Prompt: ids{1, 2}, Replaces: broke.ID()})
			require.NoError(t, err)
			require.NoError(t, again.End(t.Context(), live.Reply{Output: ids{10, 11, 12, 13}, Logprobs: []float32{-1, -1, -1, -1}}))
		}
		ask(t, s, ids{1, 2, 10, 11, 14, 13, 20}, ids{30})
		ask(t, s, ids{1, 2, 10, 11, 14, 13, 20, 30, 40}, ids{50})
		require.Equal(t, !retried, callsOf(t, s)[0].Used)
		r, err := s.Rollout()
		require.NoError(t, err)
		require.Equal(t, retried, r.Turns[0].Incomplete != "", r.Turns[0].Incomplete)
		for _, later := range r.Turns[1:] {
			require.Empty(t, later.Incomplete)
		}
	}
}

// A call with invalid ids or counts from the engine is incomplete: kept and never trained.
func TestIncompleteCalls(t *testing.T) {
	nan := float32(0)
	nan /= nan
	rec, err := live.New(live.Options{Vocab: 1000})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	good := func() live.Reply {
		return live.Reply{Prompt: ids{1, 2}, Output: ids{3, 4}, Logprobs: []float32{-1, -2}, Usage: live.Usage{PromptTokens: 2, CompletionTokens: 2}}
	}
	for name, spoil := range map[string]func(r *live.Reply){
		"fewer ids than usage counts":     func(r *live.Reply) { r.Usage.CompletionTokens = 3 },
		"more prompt ids than counted":    func(r *live.Reply) { r.Usage.PromptTokens = 1 },
		"no log probabilities":            func(r *live.Reply) { r.Logprobs = nil },
		"a log probability too few":       func(r *live.Reply) { r.Logprobs = r.Logprobs[:1] },
		"a log probability that is none":  func(r *live.Reply) { r.Logprobs[1] = nan },
		"a positive log probability":      func(r *live.Reply) { r.Logprobs[0] = 0.5 },
		"an id that is none of the model": func(r *live.Reply) { r.Output[1] = 1000 },
		"a negative id":                   func(r *live.Reply) { r.Output[1] = -1 },
		"no prompt":                       func(r *live.Reply) { r.Prompt = nil },
		"no ids":                          func(r *live.Reply) { r.Output, r.Logprobs, r.Usage.CompletionTokens = nil, nil, 0 },
		"a negative version":              func(r *live.Reply) { r.Version = new(int32(-1)) },
		"what the caller knows":           func(r *live.Reply) { r.Incomplete = "the stream was cut" },
	} {
		c, err := s.Begin(t.Context(), live.Request{})
		require.NoError(t, err)
		r := good()
		spoil(&r)
		require.NoError(t, c.End(t.Context(), r), name)
		state, why := became(s, c)
		require.Equal(t, live.StateIncomplete, state, name)
		require.NotEmpty(t, why, name)
	}
	c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1, 3}})
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), good()))
	state, why := became(s, c)
	require.Equal(t, live.StateIncomplete, state)
	require.Contains(t, why, "not the one that was sent")
	c, err = s.Begin(t.Context(), live.Request{})
	require.NoError(t, err)
	require.NoError(t, c.Append(ids{3}, []float32{1e-4}, new(int32(7))))
	require.NoError(t, c.Append(ids{4}, []float32{-1}, new(int32(8))))
	require.NoError(t, c.End(t.Context(), live.Reply{Prompt: ids{1, 2}, Usage: live.Usage{PromptTokens: 2, CompletionTokens: 2}}))
	state, _ = became(s, c)
	require.Equal(t, live.StateOK, state)
	r, err := s.Rollout()
	require.NoError(t, err)
	require.NoError(t, r.Validate())
	trained := 0
	for _, turn := range r.Turns {
		if turn.Incomplete == "" {
			trained++
			require.Equal(t, []rollout.VersionRun{{From: 0, Version: 7}, {From: 1, Version: 8}}, turn.Versions)
			require.Zero(t, turn.Logprobs[0], "rounding")
		}
	}
	require.Equal(t, 1, trained)
	require.Equal(t, map[live.State]int{live.StateIncomplete: 13, live.StateOK: 1}, rec.Stats().Calls)
}

// Repeating the end of a session returns the same result; another ending and later calls are refused.
func TestEnds(t *testing.T) {
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a", Group: "g", Index: 2})
	child := begin(t, rec, live.Start{ID: "a/b", Parent: "a", Agent: "sub"})
	ask(t, s, ids{1}, ids{2})
	ask(t, child, ids{1, 2, 3}, ids{4})
	late, err := s.Begin(t.Context(), live.Request{Prompt: ids{5}})
	require.NoError(t, err)
	require.NoError(t, late.Append(ids{6}, []float32{-1}, nil))
	_, err = child.End(t.Context(), live.Ending{})
	require.NoError(t, err)
	_, err = child.Begin(t.Context(), live.Request{})
	require.ErrorIs(t, err, live.ErrFinished)
	require.False(t, s.Ended())
	first, err := s.End(t.Context(), solved(true))
	require.NoError(t, err)
	require.Equal(t, "g", first.Group)
	require.Equal(t, 2, first.Index)
	require.Len(t, first.Turns, 3)
	require.Equal(t, "sub", first.Turns[1].Agent)
	require.Equal(t, "abort", first.Turns[2].FinishReason)
	require.Equal(t, "aborted: the session ended", first.Turns[2].Incomplete)
	second, err := s.End(t.Context(), solved(true))
	require.NoError(t, err)
	require.Equal(t, first, second)
	_, err = s.End(t.Context(), solved(false))
	require.ErrorIs(t, err, live.ErrConflict)
	require.ErrorIs(t, err, rollout.KindInput)
	for _, err := range []error{
		late.Append(ids{7}, nil, nil), late.Prompt(ids{5}), late.End(t.Context(), live.Reply{}), late.Abort(t.Context(), ""),
		s.Mark(t.Context(), late.ID(), live.StateUnseen, ""),
	} {
		require.ErrorIs(t, err, live.ErrFinished)
	}
	_, err = rec.Begin(t.Context(), live.Start{ID: "c", Parent: "a"})
	require.ErrorIs(t, err, live.ErrFinished)
	_, err = rec.Begin(t.Context(), live.Start{ID: "c", Parent: "none"})
	require.ErrorIs(t, err, live.ErrUnknown)
	again, err := rec.Begin(t.Context(), live.Start{ID: "a"})
	require.NoError(t, err)
	_, err = again.Begin(t.Context(), live.Request{})
	require.ErrorIs(t, err, live.ErrFinished)
	x := solved(true)
	x.Status, x.Failure = rollout.StatusCompleted, &rollout.Failure{Reason: "lost"}
	_, err = begin(t, rec, live.Start{ID: "d"}).End(t.Context(), x)
	require.ErrorIs(t, err, rollout.KindInput, "an ending that contradicts itself")
}

// Exceeding each limit is an error of KindLimit that leaves the records unchanged.
func TestBounds(t *testing.T) {
	rec, err := live.New(live.Options{MaxSessions: 1, MaxCalls: 3, MaxInFlight: 2, MaxTokens: 10, MaxBytes: 2000, MaxBlob: 4})
	require.NoError(t, err)
	ctx := t.Context()
	s := begin(t, rec, live.Start{ID: "a"})
	_, err = rec.Begin(ctx, live.Start{ID: "b"})
	require.ErrorIs(t, err, rollout.KindLimit)
	_, err = s.Begin(ctx, live.Request{Prompt: make(ids, 11)})
	require.ErrorIs(t, err, rollout.KindLimit)
	_, err = s.Begin(ctx, live.Request{Messages: []rollout.Message{{Role: "user", Content: strings.Repeat("x", 2000)}}})
	require.ErrorIs(t, err, rollout.KindLimit)
	one, err := s.Begin(ctx, live.Request{Prompt: ids{1}})
	require.NoError(t, err)
	two, err := s.Begin(ctx, live.Request{Prompt: ids{1}})
	require.NoError(t, err)
	_, err = s.Begin(ctx, live.Request{})
	require.ErrorIs(t, err, rollout.KindLimit)
	require.ErrorIs(t, one.Append(make(ids, 10), nil, nil), rollout.KindLimit)
	require.ErrorIs(t, one.End(ctx, live.Reply{Blob: make([]byte, 5)}), rollout.KindLimit)
	require.NoError(t, one.End(ctx, live.Reply{Output: ids{2}, Logprobs: []float32{-1}, Blob: []byte("blob")}))
	blob, err := s.Blob(one.ID())
	require.NoError(t, err)
	require.Equal(t, "blob", string(blob))
	require.NoError(t, two.Abort(ctx, "enough"))
	ask(t, s, ids{1}, ids{3})
	_, err = s.Begin(ctx, live.Request{})
	require.ErrorIs(t, err, rollout.KindLimit, "all calls are made")
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	_, err = s.Begin(stopped, live.Request{})
	require.Error(t, err)
}

// Blobs can be read from the journal, before and after a restart.
func TestBlobs(t *testing.T) {
	dir, want := t.TempDir(), bytes.Repeat([]byte{0, 1, 255}, 1000)
	rec, j := recorder(t, dir, live.JournalOptions{}, live.Options{NewID: func() string { return "c" }})
	s := begin(t, rec, live.Start{ID: "a"})
	c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1}})
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), live.Reply{Output: ids{2}, Logprobs: []float32{-1}, Blob: want}))
	for range 2 {
		got, err := s.Blob("c")
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, len(want), callsOf(t, s)[0].BlobBytes)
		require.NoError(t, j.Close())
		rec, j = recorder(t, dir, live.JournalOptions{}, live.Options{})
		s, _ = rec.Session("a")
	}
	_, err = s.Blob("none")
	require.ErrorIs(t, err, live.ErrUnknown)
}

// Many calls of many sessions run concurrently, with and without a journal.
func TestConcurrentCalls(t *testing.T) {
	for range 2 {
		dir := t.TempDir()
		rec, j := recorder(t, dir, live.JournalOptions{SegmentBytes: 16 << 10}, live.Options{})
		var wg sync.WaitGroup
		for n := range 8 {
			s := begin(t, rec, live.Start{ID: fmt.Sprint("s", n%4)})
			wg.Go(func() {
				for k := range 20 {
					c, err := s.Begin(context.Background(), live.Request{Prompt: ids{rollout.TokenID(n), rollout.TokenID(k)}})
					if err == nil {
						_, err = s.Rollout()
					}
					if err == nil {
						err = c.End(context.Background(), live.Reply{Output: ids{5}, Logprobs: []float32{-1}})
					}
					if err != nil {
						panic(err)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, 160, rec.Stats().Calls[live.StateOK])
		var before string
		for s := range rec.Sessions() {
			r, err := s.Rollout()
			require.NoError(t, err)
			before += lines(t, r)
		}
		require.NoError(t, j.Close())
		rec, _ = recorder(t, dir, live.JournalOptions{}, live.Options{})
		var after string
		for s := range rec.Sessions() {
			r, err := s.Rollout()
			require.NoError(t, err)
			after += lines(t, r)
		}
		require.Equal(t, before, after)
	}
}

// Calls of 200 prompt ids and 100 sampled ones, made by 64 agents concurrently.
func BenchmarkCalls(b *testing.B) {
	for _, name := range []string{"journal", "memory"} {
		b.Run(name, func(b *testing.B) {
			o := live.Options{}
			var j *live.Journal
			if name == "journal" {
				var err error
				j, err = live.OpenJournal(b.TempDir(), live.JournalOptions{})
				require.NoError(b, err)
				o.Journal = j
			}
			rec, err := live.New(o)
			require.NoError(b, err)
			logprobs := make([]float32, 100)
			for i := range logprobs {
				logprobs[i] = -float32(i) / 7
			}
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				s, err := rec.Begin(context.Background(), live.Start{})
				if err != nil {
					panic(err)
				}
				prompt, output := make(ids, 200, 10_000), make(ids, 100)
				messages := []rollout.Message{{Role: rollout.RoleUser, Content: strings.Repeat("word ", 150)}}
				for n := 0; pb.Next(); n++ {
					if n%20 == 19 {
						if _, err := s.End(context.Background(), solved(true)); err != nil {
							panic(err)
						}
						if err := rec.Deliver(context.Background(), live.Batch{Key: s.ID(), Sessions: []string{s.ID()}}); err != nil {
							panic(err)
						}
						if s, err = rec.Begin(context.Background(), live.Start{}); err != nil {
							panic(err)
						}
						prompt, messages = prompt[:200], messages[:1]
					}
					c, err := s.Begin(context.Background(), live.Request{Messages: messages, Prompt: prompt})
					if err == nil {
						reply := rollout.Message{Role: rollout.RoleAssistant, Content: strings.Repeat("said ", 70) + fmt.Sprint(n)}
						messages = append(messages, reply)
						err = c.End(context.Background(), live.Reply{Message: &reply, Output: output, Logprobs: logprobs})
					}
					if err != nil {
						panic(err)
					}
					prompt = append(prompt, output...)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			if j != nil {
				b.ReportMetric(float64(j.Stats().Records)/float64(j.Stats().Syncs), "records/fsync")
				require.NoError(b, j.Close())
			}
		})
	}
}

// Joins of calls: a conversation that continues, a reply whose ids came back different, a second sample, an
// unrelated prompt.
func TestJoins(t *testing.T) {
	r, err := live.New(live.Options{})
	require.NoError(t, err)
	s, err := r.Begin(t.Context(), live.Start{})
	require.NoError(t, err)
	say := func(role rollout.Role, text string) rollout.Message {
		return rollout.Message{Role: role, Content: text}
	}
	call := func(messages []rollout.Message, prompt []rollout.TokenID, reply string, ids ...rollout.TokenID) {
		c, err := s.Begin(t.Context(), live.Request{Messages: messages, Prompt: prompt})
		require.NoError(t, err)
		m := say(rollout.RoleAssistant, reply)
		require.NoError(t, c.End(t.Context(), live.Reply{Message: &m, Output: ids, Logprobs: make([]float32, len(ids))}))
	}
	user := say(rollout.RoleUser, "q")
	first := []rollout.Message{user}
	second := []rollout.Message{user, say(rollout.RoleAssistant, "a"), say(rollout.RoleUser, "r")}
	call(first, []rollout.TokenID{1, 2}, "a", 3, 4, 5)
	call(second, []rollout.TokenID{1, 2, 3, 4, 5, 6}, "b", 7)
	call(second, []rollout.TokenID{1, 2, 3, 9, 6}, "c", 7)
	call(first, []rollout.TokenID{1, 2}, "d", 8)
	call([]rollout.Message{say(rollout.RoleUser, "other")}, []rollout.TokenID{2}, "e", 8)
	var joins []string
	var drift []int
	for _, c := range callsOf(t, s) {
		joins, drift = append(joins, c.Join), append(drift, c.Drift)
	}
	require.Equal(t, []string{"first", "extends", "drifts", "forks", "first"}, joins)
	require.Equal(t, []int{0, 0, 2, 0, 0}, drift)
	require.Equal(t, callsOf(t, s)[0].ID, callsOf(t, s)[2].Base)
}

// A tool result of an unknown call adds a note and keeps the rollout.
func TestUnknownToolCall(t *testing.T) {
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	s := begin(t, rec, live.Start{ID: "a"})
	c, err := s.Begin(t.Context(), live.Request{Prompt: ids{1}, Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "hi"}, {Role: rollout.RoleTool, ToolCallID: "made-up", Content: "1"}}})
	require.NoError(t, err)
	require.NoError(t, c.End(t.Context(), live.Reply{Output: ids{2}, Logprobs: []float32{-1}}))
	r, err := s.Rollout()
	require.NoError(t, err)
	require.NoError(t, r.Validate())
	require.Len(t, r.Notes, 1)
	require.Equal(t, rollout.NoteUnknownCall, r.Notes[0].Code)
	r.Notes = nil
	require.ErrorContains(t, r.Validate(), "made-up", "elsewhere it is a fault")
}
