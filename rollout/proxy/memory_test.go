package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
)

// growing is an engine in this process: the prompt of a session's call is the previous prompt, its reply and 32
// more ids, and the reply has 32 ids.
type growing struct{}

func (growing) Generate(_ context.Context, r *engine.Request, yield func(*engine.Chunk) error) error {
	id, err := strconv.Atoi(r.Session)
	if err != nil {
		return err
	}
	turn := len(r.Messages) / 2
	prompt := make([]rollout.TokenID, 64*turn+32)
	for i := range prompt {
		prompt[i] = rollout.TokenID(i*7 + id)
	}
	output, logprobs := make([]rollout.TokenID, 32), make([]float32, 32)
	for i := range output {
		output[i], logprobs[i] = rollout.TokenID((len(prompt)+i)*7+id), -0.125*float32(i%9)
	}
	if err := yield(&engine.Chunk{ID: "x", Model: "m", Prompt: prompt, Choices: []engine.Choice{{Text: "look at "}}}); err != nil {
		return err
	}
	return yield(&engine.Chunk{Choices: []engine.Choice{{IDs: output, Logprobs: logprobs, Text: "file " + strconv.Itoa(turn), Finish: "stop"}}, Usage: &engine.Usage{Prompt: len(prompt), Completion: len(output)}})
}

func (growing) Tokenize(context.Context, *engine.Request) ([]rollout.TokenID, error) { return nil, nil }
func (growing) Models(context.Context) (json.RawMessage, error)                      { return nil, nil }
func (growing) Close()                                                               {}
func (growing) Route(string) string                                                  { return "e" }
func (growing) Status() []engine.Status                                              { return nil }

// TestManySessions runs sessions of 50 calls each, by clients of each dialect, recorded with a journal.
// TURNPACK_SESSIONS sets their number, default 20; 10,000 take less than a GiB, both one after the other and
// all open at once.
func TestManySessions(t *testing.T) {
	kit.Long(t)
	t.Run("one after the other", func(t *testing.T) { manySessions(t, false, 0) })
	t.Run("turn by turn", func(t *testing.T) { manySessions(t, true, 0) })
	t.Run("turn by turn, in little memory", func(t *testing.T) { manySessions(t, true, 256<<10) })
}

// manySessions runs the calls of one session after the other, or one call of each session in turn, with a limit
// on the recorder's memory, 0 = its default.
func manySessions(t *testing.T, turnByTurn bool, memory int) {
	n, turns := 20, 50
	if s := os.Getenv("TURNPACK_SESSIONS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	j, err := live.OpenJournal(t.TempDir(), live.JournalOptions{})
	require.NoError(t, err)
	defer j.Close()
	recorder, err := live.New(live.Options{Journal: j, MaxMemory: memory})
	require.NoError(t, err)
	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: growing{}, Open: recorder.Begin})
	require.NoError(t, err)
	defer h.Close()
	// The clients send the same requests, turn by turn.
	var said [][]byte
	for turn := range turns {
		var m []byte
		if turn > 0 {
			m = append(bytes.Clone(said[turn-1]), `,{"role":"assistant","content":"look at file `+strconv.Itoa(turn-1)+`"},`...)
		}
		said = append(said, append(m, `{"role":"user","content":"and then `+strconv.Itoa(turn)+`"}`...))
	}
	talk := func(i, turn int) {
		path, more := "/v1/chat/completions", ""
		if i%2 == 1 {
			path, more = "/v1/messages", `,"max_tokens":64`
		}
		if i%4 > 1 {
			more += `,"stream":true`
		}
		body := bytes.Join([][]byte{[]byte(`{"model":"m"` + more + `,"messages":[`), said[turn], []byte("]}")}, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/rollouts/"+strconv.Itoa(i)+path, bytes.NewReader(body)))
		if w.Code != http.StatusOK {
			t.Errorf("session %d, call %d: %d %s", i, turn, w.Code, w.Body)
		}
	}
	each := func(do func(i int)) {
		var wg sync.WaitGroup
		ids := make(chan int)
		for range 64 {
			wg.Go(func() {
				for i := range ids {
					do(i)
				}
			})
		}
		for i := range n {
			ids <- i
		}
		close(ids)
		wg.Wait()
	}
	if turnByTurn {
		for turn := range turns {
			each(func(i int) { talk(i, turn) })
		}
	} else {
		each(func(i int) {
			for turn := range turns {
				talk(i, turn)
			}
		})
	}
	stats := recorder.Stats()
	require.Equal(t, map[live.State]int{live.StateOK: n * turns}, stats.Calls)
	for _, i := range []int{0, n / 2, n - 1} {
		s, ok := recorder.Session(strconv.Itoa(i))
		require.True(t, ok)
		r, err := s.Rollout()
		require.NoError(t, err)
		require.Len(t, r.Turns, turns)
		full, err := r.PromptTokens(nil, turns-1)
		require.NoError(t, err)
		require.Len(t, full, 64*(turns-1)+32)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // not Linux
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "kB")
	kb, err := strconv.Atoi(strings.TrimSpace(peak))
	require.NoError(t, err)
	t.Logf("%d sessions of %d calls: %d MiB resident at most, %d MiB of journal", n, turns, kb>>10, j.Stats().Bytes>>20)
	require.Less(t, kb, 1<<20, "a GiB")
}

// TestIdleSessions: a retry of a call of a dropped session gets the recorded reply.
func TestIdleSessions(t *testing.T) {
	recorder, err := live.New(live.Options{})
	require.NoError(t, err)
	h, err := proxy.New(proxy.Options{Recorder: recorder, Engine: growing{}, Open: recorder.Begin})
	require.NoError(t, err)
	defer h.Close()
	const n = 1500
	for range 2 {
		for i := range n {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/rollouts/"+strconv.Itoa(i)+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)))
			require.Equal(t, http.StatusOK, w.Code)
		}
	}
	require.EqualValues(t, n, h.Stats().Replayed)
	require.Equal(t, map[live.State]int{live.StateOK: n}, recorder.Stats().Calls)
}
