package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
)

// on opens a service on an engine; ask sends requests to it.
func on(t *testing.T, url string, o serve.Options) (s *serve.Service, ask asks) {
	t.Helper()
	return opened(t, url, o, plainRows)
}

// plainRows writes the rows of a group as recorded.
func plainRows(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
	_, err := turnpack.Pipeline{}.Run(ctx, turnpack.Slice(group), w)
	return err
}

func opened(t *testing.T, url string, o serve.Options, rows func(context.Context, []*rollout.Rollout, *export.Writer) error) (s *serve.Service, ask asks) {
	t.Helper()
	o.Engines, o.Journal, o.Out = []engine.Options{{URL: url}}, t.TempDir(), t.TempDir()
	o.Groups.Rows = rows
	s, err := serve.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	h := s.Handler()
	return s, func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
}

// TestGroupStartsAtOnce: the rollouts of a group run concurrently: the engine answers no first call before it
// has received all of them.
func TestGroupStartsAtOnce(t *testing.T) {
	const n = 16
	fake := fakeengine.New(fakeengine.Options{Seed: 4})
	var all sync.WaitGroup
	all.Add(n)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			all.Done() // each rollout makes one call
			all.Wait()
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	_, ask := on(t, upstream.URL, serve.Options{Groups: serve.Groups{Size: n}})
	var wg sync.WaitGroup
	batches := make(chan string, n)
	for i := range n {
		wg.Go(func() {
			path := fmt.Sprintf("/rollouts/task-%d", i)
			code, text := ask("POST", path+"/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"attempt %d"}]}`, i))
			if code != 200 {
				t.Error(code, text)
			}
			code, text = ask("POST", path+"/end", fmt.Sprintf(`{"group":"task","resolved":%t}`, i%2 == 0))
			if code != 200 {
				t.Error(code, text)
			}
			if !strings.Contains(text, `"batch":null`) {
				batches <- text
			}
		})
	}
	wg.Wait()
	close(batches)
	require.Len(t, batches, 1, "the last one makes the group complete")
	var answer struct{ Batch struct{ Rows int } }
	require.NoError(t, json.Unmarshal([]byte(<-batches), &answer))
	require.Equal(t, n, answer.Batch.Rows)
}

// TestClockJumps: a clock that jumps hours back and forth at most truncates a rollout with a time limit, with
// the reason; no record is lost, and no reported time is negative.
func TestClockJumps(t *testing.T) {
	fake := httptest.NewServer(fakeengine.New(fakeengine.Options{Seed: 5}))
	t.Cleanup(fake.Close)
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(26, 3))
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Duration(r.IntN(7)-3) * time.Hour)
		return now
	}
	const size = 8
	_, ask := on(t, fake.URL, serve.Options{Record: live.Options{Now: clock}, Gate: gate.Options{Now: clock, Caps: gate.Caps{Time: 2 * time.Hour}},
		Groups: serve.Groups{Size: size, Now: clock, Deadline: time.Hour}})
	truncated, replies := 0, 0
	for i := range size {
		path, told := fmt.Sprintf("/rollouts/r%d", i), 0
		for _, call := range []string{"chat/completions", "messages", "chat/completions", "messages"} {
			code, text := ask("POST", path+"/v1/"+call, fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"call %d"}]}`, told))
			if code != 200 {
				require.Equal(t, 400, code, text)
				require.Contains(t, text, "the rollout is at its cap: 2h0m0s")
				shape(t, text, call == "messages")
				truncated++
				break
			}
			told++
		}
		replies += told
		_, text := ask("GET", path+"/calls", "")
		require.NotContains(t, text, `":-`, "no time is negative")
		_, text = ask("GET", path, "")
		x, err := jsonl.Parse([]byte(strings.TrimSpace(text)), jsonl.Options{})
		require.NoError(t, err)
		require.Len(t, x.Turns, told)
		code, text := ask("POST", path+"/end", `{"group":"g","resolved":true}`)
		require.Equal(t, 200, code, text)
		require.NotContains(t, text, "left_out")
		if i == size-1 {
			require.Contains(t, text, fmt.Sprintf(`"rows":%d`, replies), "each reply is in the batch")
		}
	}
	require.NotZero(t, truncated)
	require.Greater(t, replies, size)
}

// twice is an estimator: twice the reward.
type twice struct{}

func (twice) Advantages(groups []reward.GroupRewards) ([][]reward.Advantage, error) {
	out := make([][]reward.Advantage, len(groups))
	for i, g := range groups {
		for _, r := range g.Rollouts {
			a := reward.Advantage{Value: 2 * r.Reward}
			if r.Excluded != "" {
				a = reward.Advantage{Dropped: r.Excluded}
			}
			out[i] = append(out[i], a)
		}
	}
	return out, nil
}

// sink keeps what is written.
type sink struct {
	*export.Writer
	rows map[string]rollout.Sample
}

func (s sink) Write(x rollout.Sample) error {
	s.rows[x.ID] = x
	return s.Writer.Write(x)
}

// TestHooks: the user's reward function, step scorer and estimator make the batch of a group, and rollouts that
// a scorer cannot score are left out with the reason.
func TestHooks(t *testing.T) {
	fake := httptest.NewServer(fakeengine.New(fakeengine.Options{Seed: 6}))
	t.Cleanup(fake.Close)
	var mu sync.Mutex
	scored := map[string]int{}
	pipeline := turnpack.Pipeline{
		Reward: func(r *rollout.Rollout) rollout.Reward {
			var seed float64
			if err := json.Unmarshal(r.Metadata["seed"], &seed); err != nil {
				t.Error(err)
			}
			return rollout.Reward{Total: seed, Outcome: seed}
		},
		Estimator: twice{},
	}
	rows := map[string]rollout.Sample{}
	o := serve.Options{Groups: serve.Groups{Size: 3,
		Score: func(_ context.Context, r *rollout.Rollout) ([]rollout.StepScore, error) {
			mu.Lock()
			defer mu.Unlock()
			if scored[r.ID]++; r.ID == "c" {
				return nil, errors.New("the judge is gone")
			}
			return []rollout.StepScore{{Step: 0, Score: new(0.25)}}, nil
		}}}
	_, ask := opened(t, fake.URL, o, func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
		for _, r := range group {
			if r.Failure == nil {
				require.InDelta(t, 0.25, *r.Steps[0].Score, 0)
			}
		}
		_, err := pipeline.Run(ctx, turnpack.Slice(group), sink{w, rows})
		return err
	})
	for i, id := range []string{"a", "b", "c"} {
		code, text := ask("POST", "/rollouts/"+id+"/v1/messages", fmt.Sprintf(bodies["messages"], id))
		require.Equal(t, 200, code, text)
		code, text = ask("POST", "/rollouts/"+id+"/end", fmt.Sprintf(`{"group":"g","resolved":true,"metadata":{"seed":%d}}`, i+3))
		require.Equal(t, 200, code, text)
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, scored)
	require.Len(t, rows, 2)
	require.InDelta(t, 6, *rows["a#0"].Advantage, 0)
	require.InDelta(t, 8, *rows["b#0"].Advantage, 0)
	_, text := ask("GET", "/metrics", "")
	require.Contains(t, text, `turnpack_delivery_left_out{reason="`)
}
