package proxy_test

import (
	"bufio"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
)

// TestRetries: a repeated body joins the running call or gets its reply, in each dialect, and never a second
// sample.
func TestRetries(t *testing.T) {
	for name, q := range requests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fakeengine.Options{Seed: 3, Faults: fakeengine.Faults{Delay: time.Millisecond}, Event: 20})
			var wg sync.WaitGroup
			texts := make([]string, 6)
			for i := range texts {
				wg.Go(func() {
					_, body := w.ask("/rollouts/r"+q.path, q.body+`,"stream":true}`)
					_, data := events(t, body)
					require.NotEmpty(t, data)
					for _, d := range data {
						for _, s := range []any{at(d, "delta"), at(d, "choices", 0, "delta", "content"), at(d, "delta", "text")} {
							x, _ := s.(string)
							texts[i] += x
						}
					}
				})
			}
			wg.Wait()
			_, again := w.ask("/rollouts/r"+q.path, q.body+`,"stream":true}`)
			require.NotEmpty(t, again)
			for i := range texts {
				require.Equal(t, texts[0], texts[i])
			}
			require.Equal(t, 1, w.fake.Requests())
			require.Len(t, w.calls("r"), 1)
			s := w.handler.Stats()
			require.EqualValues(t, 6, s.Joined+s.Replayed)
			require.Zero(t, s.Failed)
		})
	}
}

// TestRetryAfterRestart: the reply of a call that ended before a restart is sent again from the journal.
func TestRetryAfterRestart(t *testing.T) {
	dir := t.TempDir()
	var first string
	for round := range 2 {
		journal, err := live.OpenJournal(dir, live.JournalOptions{})
		require.NoError(t, err)
		recorder, err := live.New(live.Options{Journal: journal})
		require.NoError(t, err)
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}}, func(o *proxy.Options) { o.Recorder = recorder })
		q := requests["anthropic"]
		status, body := w.ask("/rollouts/r"+q.path, q.body+"}")
		require.Equal(t, 200, status, body)
		v := parsed(t, body)
		delete(v, "model")
		if round == 0 {
			first = body
			require.Equal(t, 1, w.fake.Requests())
		} else {
			require.Equal(t, parsed(t, first)["content"], v["content"])
			require.Equal(t, parsed(t, first)["id"], v["id"])
			require.Equal(t, parsed(t, first)["usage"], v["usage"])
			require.Zero(t, w.fake.Requests())
		}
		require.NoError(t, journal.Close())
	}
}

// TestRetriesAreToldAll: a retry is told what the first request asked for besides the text: ids, log probabilities,
// the prompt's ids and the stop string.
func TestRetriesAreToldAll(t *testing.T) {
	chat := `"messages":[{"role":"user","content":"What is here?"}],"return_token_ids":true,"logprobs":true`
	keep := []string{"token_ids", "prompt_token_ids", "logprob", "token_logprobs", "stop_sequence", "stop_reason", "finish_reason"}
	for name, q := range map[string][3]string{
		"chat":           {"/v1/chat/completions", chat, ""},
		"chat, stream":   {"/v1/chat/completions", chat + `,"stream":true`, ""},
		"chat, choices":  {"/v1/chat/completions", chat + `,"n":2`, ""},
		"completions":    {"/v1/completions", `"prompt":"What","return_token_ids":true,"logprobs":1`, ""},
		"ids, stream":    {"/v1/completions", `"prompt":[87,104],"return_token_ids":true,"logprobs":1,"stream":true`, ""},
		"anthropic stop": {"/v1/messages", `"max_tokens":4096,"messages":[{"role":"user","content":"x"}],"stop_sequences":["four"]`, `"four"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{{Content: "one two three four five"}}, Event: 7})
			var told [2]map[string][]any
			for i := range told {
				status, body := w.ask("/rollouts/r"+q[0], `{"model":"m",`+q[1]+"}")
				require.Equal(t, 200, status, body)
				require.Contains(t, body, q[2])
				told[i] = map[string][]any{}
				if !strings.Contains(q[1], "stream") {
					collect(parsed(t, body), keep, told[i])
					continue
				}
				_, data := events(t, body)
				for _, d := range data {
					collect(d, keep, told[i])
				}
			}
			require.Equal(t, told[0], told[1])
			require.Equal(t, 1, w.fake.Requests())
		})
	}
}

// collect appends the values of the named members of v, wherever they are: of lists their elements, and numbers as
// exact as they are recorded.
func collect(v any, names []string, to map[string][]any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			collect(x, names, to)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			collect(v[k], names, to)
			list, ok := v[k].([]any)
			if !ok && v[k] != nil {
				list = []any{v[k]}
			}
			for _, x := range list {
				if n, ok := x.(float64); ok {
					x = float32(n)
				}
				if slices.Contains(names, k) {
					to[k] = append(to[k], x)
				}
			}
		}
	}
}

// TestRetryAfterRestartOfFailures: a reply that broke and was requested again is not replayed, even if the
// second call failed or was killed: a retry after a restart is sampled anew.
func TestRetryAfterRestartOfFailures(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		journal, err := live.OpenJournal(dir, live.JournalOptions{})
		require.NoError(t, err)
		recorder, err := live.New(live.Options{Journal: journal})
		require.NoError(t, err)
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Faults: fakeengine.Faults{Cut: []int{1500, 0}[round]}},
			func(o *proxy.Options) { o.Recorder = recorder })
		q := requests["chat"]
		for range 2 - round {
			status, body := w.ask("/rollouts/r"+q.path, q.body+`,"stream":true}`)
			require.Equal(t, 200, status, body)
			require.Equal(t, round == 1, strings.Contains(body, "[DONE]"), body)
		}
		if round == 1 {
			var states []live.State
			for _, c := range w.calls("r") {
				states = append(states, c.State)
			}
			require.Equal(t, []live.State{live.StateSuperseded, live.StateSuperseded, live.StateOK}, states)
		}
		require.NoError(t, journal.Close())
	}
}

// TestRetryOfAFailure: a call that failed is sampled anew and replaced.
func TestRetryOfAFailure(t *testing.T) {
	w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Faults: fakeengine.Faults{Fail: 1, Status: 500}})
	q := requests["chat"]
	status, body := w.ask("/rollouts/r"+q.path, q.body+"}")
	require.Equal(t, 500, status, body)
	require.Contains(t, at(parsed(t, body), "error", "message"), "told to fail")
	status, _ = w.ask("/rollouts/r"+q.path, q.body+"}")
	require.Equal(t, 200, status)
	calls := w.calls("r")
	require.Len(t, calls, 2)
	require.Equal(t, live.StateSuperseded, calls[0].State)
	require.Equal(t, live.StateOK, calls[1].State)
	require.Equal(t, calls[0].ID, calls[1].Replaces)
	require.Equal(t, 1, calls[1].Attempt)
}

// TestIdempotencyKey: the key identifies a request and belongs to one body.
func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t, fakeengine.Options{Seed: 1})
	q := requests["chat"]
	_, a := w.ask("/rollouts/r"+q.path, q.body+"}", "Idempotency-Key", "k")
	_, b := w.ask("/rollouts/r"+q.path, q.body+"}", "Idempotency-Key", "k")
	require.Equal(t, at(parsed(t, a), "choices", 0, "message", "content"), at(parsed(t, b), "choices", 0, "message", "content"))
	require.Equal(t, 1, w.fake.Requests())
	status, _ := w.ask("/rollouts/r"+q.path, q.body+`,"top_p":0.5}`, "Idempotency-Key", "k")
	require.Equal(t, 409, status)
	w.ask("/rollouts/r"+q.path, q.body+"}")
	w.ask("/rollouts/r"+q.path, q.body+"}", "Idempotency-Key", "other")
	require.Equal(t, 3, w.fake.Requests(), "without the key it is another request")
}

// TestClientGone: the reply of a client that left is recorded to its end, and its retry gets it; or the reply
// is stopped, and the ids that arrived are kept.
func TestClientGone(t *testing.T) {
	for _, abort := range []bool{false, true} {
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Faults: fakeengine.Faults{Delay: time.Millisecond}},
			func(o *proxy.Options) { o.AbortUnseen = abort })
		q := requests["anthropic"]
		ctx, cancel := context.WithCancel(context.Background())
		res := w.send(ctx, "/rollouts/r"+q.path, q.body+`,"stream":true}`)
		line := bufio.NewReader(res.Body)
		for n := 0; n < 30; n++ {
			_, err := line.ReadString('\n')
			require.NoError(t, err)
		}
		cancel()
		res.Body.Close()
		want := live.StateUnseen
		if abort {
			want = live.StateAborted
		}
		require.Eventually(t, func() bool { return w.calls("r")[0].State == want }, 20*time.Second, 5*time.Millisecond)
		out := w.rollout("r").Turns[0].Output
		whole := sampled(toolText)
		if !abort {
			require.Equal(t, whole, out)
		} else {
			require.NotEmpty(t, out)
			require.Less(t, len(out), len(whole))
			require.Equal(t, whole[:len(out)], out)
		}
		_, body := w.ask("/rollouts/r"+q.path, q.body+`,"stream":true}`)
		text, _, _ := told(t, "anthropic", true, body)
		require.Equal(t, "Reading é.", text)
		calls := w.calls("r")
		if abort {
			require.Equal(t, 2, w.fake.Requests())
			require.Equal(t, live.StateSuperseded, calls[0].State)
			require.Equal(t, live.StateOK, calls[1].State)
		} else {
			require.Equal(t, 1, w.fake.Requests())
			require.Equal(t, live.StateOK, calls[0].State)
		}
	}
}

// TestEndIsHeld: while the journal cannot record the end, the client does not receive it.
func TestEndIsHeld(t *testing.T) {
	for name, q := range requests {
		journal, err := live.OpenJournal(t.TempDir(), live.JournalOptions{})
		require.NoError(t, err)
		recorder, err := live.New(live.Options{Journal: journal})
		require.NoError(t, err)
		w := newWorld(t, fakeengine.Options{Script: []fakeengine.Reply{toolReply}, Faults: fakeengine.Faults{Delay: time.Millisecond}}, func(o *proxy.Options) { o.Recorder = recorder })
		res := w.send(context.Background(), "/rollouts/r"+q.path, q.body+`,"stream":true}`)
		r := bufio.NewReader(res.Body)
		head := ""
		for n := 0; n < 20; n++ {
			s, err := r.ReadString('\n')
			require.NoError(t, err)
			head += s
		}
		require.NoError(t, journal.Close())
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		body := head + string(rest)
		require.Contains(t, strings.ToLower(body), "error", name)
		for _, end := range []string{"message_stop", "message_delta", "[DONE]", "response.completed", `"finish_reason":"tool_calls"`} {
			require.NotContains(t, body, end, name)
		}
		asked := w.fake.Requests()
		status, body := w.ask("/rollouts/r2"+q.path, q.body+`}`)
		require.Equal(t, 503, status, body)
		require.Equal(t, asked, w.fake.Requests(), "no intent, no call")
	}
}

// TestRetryOfAnUnreadableRecord: while a rollout that is only in the journal cannot be read, a retry is refused
// and not sampled anew, neither then nor later.
func TestRetryOfAnUnreadableRecord(t *testing.T) {
	dir := t.TempDir()
	q := requests["chat"]
	var first string
	for round := range 2 {
		journal, err := live.OpenJournal(dir, live.JournalOptions{})
		require.NoError(t, err)
		recorder, err := live.New(live.Options{Journal: journal, MaxMemory: 1})
		require.NoError(t, err)
		w := newWorld(t, fakeengine.Options{Seed: 3}, func(o *proxy.Options) { o.Recorder = recorder })
		if round == 0 {
			_, first = w.ask("/rollouts/r"+q.path, q.body+"}")
		}
		w.ask("/rollouts/other"+q.path, q.body+"}") // r is dropped from memory
		if round == 1 {
			segment := filepath.Join(dir, "00000001.tpj")
			require.NoError(t, os.Rename(segment, segment+".away"))
			status, body := w.ask("/rollouts/r"+q.path, q.body+"}")
			require.GreaterOrEqual(t, status, 400, body)
			require.NoError(t, os.Mkdir(segment, 0o700))
			status, body = w.ask("/rollouts/r/v1/responses", `{"model":"m","input":"x","previous_response_id":"resp_x"}`)
			require.Equal(t, 503, status, body)
			require.NoError(t, os.Remove(segment))
			require.NoError(t, os.Rename(segment+".away", segment))
			status, body = w.ask("/rollouts/r"+q.path, q.body+"}")
			require.Equal(t, 200, status, body)
			require.Equal(t, at(parsed(t, first), "choices", 0, "message", "content"), at(parsed(t, body), "choices", 0, "message", "content"))
			require.Zero(t, w.fake.Requests())
			require.Len(t, w.calls("r"), 1)
		}
		require.NoError(t, journal.Close())
	}
}
