package openai_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// quick returns options with short waits for tests.
func quick(urls ...string) openai.Options {
	o := openai.Options{Endpoints: urls, Model: "judge-1", Concurrency: 16, Timeout: 2 * time.Second, Patience: 20 * time.Second}
	o.Waits(time.Millisecond, 20*time.Millisecond)
	o.Ejects(0, 10*time.Millisecond, 50*time.Millisecond)
	return o
}

func client(t testing.TB, o openai.Options) *openai.Client {
	t.Helper()
	c, err := openai.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func request(seed int64) prm.Request {
	return prm.Request{
		Seed: seed, ID: prm.VoteID{Rollout: "r", Step: 2, Vote: 0},
		Messages: []prm.Message{{Role: rollout.RoleSystem, Content: "grade"}, {Role: rollout.RoleUser, Content: "step"}},
	}
}

func TestRequestAndReply(t *testing.T) {
	checkGoroutines(t)
	t.Setenv("SOME_KEY", "sk-secret-123")
	t.Setenv("OPENAI_API_KEY", "sk-general")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: 1")
	var leak atomic.Value
	f := newFake(t, func(_ http.ResponseWriter, r *http.Request, _ seen) bool {
		leak.Store(r.Header.Get("X-Leak"))
		return false
	})
	o := quick(f.url())
	o.KeyEnv = "SOME_KEY"
	o.Temperature, o.MaxTokens = new(0.5), 77
	o.Schema = map[string]any{"type": "object"}
	o.Extra = map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": false}}
	o.Price = openai.Price{Prompt: 2, Completion: 10}
	c := client(t, o)
	replies, err := c.JudgeN(t.Context(), request(4), 3)
	require.NoError(t, err)
	require.Len(t, replies, 3)
	require.Equal(t, `Yes. \boxed{1}`, replies[2].Text)
	require.Equal(t, "stop", replies[0].FinishReason)
	require.Positive(t, replies[0].Latency)

	req := f.log[0]
	require.Equal(t, "judge-1", req.Model)
	require.Equal(t, 3, req.N)
	require.Equal(t, int64(4), req.Seed)
	require.Equal(t, 0.5, *req.Temperature)
	require.Equal(t, 77, req.MaxTokens)
	require.Equal(t, false, req.Kwargs["enable_thinking"])
	require.Contains(t, string(req.ResponseFormat), `"json_schema"`)
	require.Equal(t, "Bearer sk-secret-123", req.Auth)
	require.Empty(t, leak.Load(), "headers that other clients take from the environment are not sent")
	require.Equal(t, "system", req.Messages[0].Role)
	require.Equal(t, "step", req.Messages[1].Content)

	s := c.Stats()
	require.Equal(t, int64(1), s.Requests)
	require.Equal(t, int64(3), s.Votes)
	require.Equal(t, int64(100), s.PromptTokens)
	require.Equal(t, int64(30), s.CompletionTokens)
	require.InDelta(t, (100*2+30*10)/1e6, s.Cost, 1e-15)
}

func TestGeneralKeyStaysAtHome(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-general")
	f := newFake(t, nil)
	_, err := client(t, quick(f.url())).Judge(t.Context(), request(1))
	require.NoError(t, err)
	require.Empty(t, f.log[0].Auth, "the key of another service is not sent")
}

func TestFailures(t *testing.T) {
	checkGoroutines(t)
	t.Setenv("TURNPACK_JUDGE_KEY", "sk-echo")
	for _, row := range []struct {
		reason string
		handle func(w http.ResponseWriter, r *http.Request)
		edit   func(*openai.Options)
		tries  int64
		says   string
	}{
		{"a bad key is not tried again, nor repeated", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 401, `{"error":{"message":"Incorrect API key provided: sk-echo","type":"x","param":null,"code":"y"}}`)
		}, nil, 1, "[key]"},
		{"the request is at fault", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 400, `{"object":"error","message":"context length exceeded","code":400}`)
		}, nil, 1, "context length exceeded"},
		{"an unknown model", func(w http.ResponseWriter, _ *http.Request) { status(w, 404, `{"detail":"no such model"}`) }, nil, 1, "no such model"},
		{"a proxy's page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(502)
			io.WriteString(w, "<h1>Bad gateway</h1>"+strings.Repeat("x", 10000))
		}, nil, 6, "status 502: <h1>Bad gateway"},
		{"server error", func(w http.ResponseWriter, _ *http.Request) { status(w, 500, "") }, nil, 6, "status 500"},
		{"connection lost", func(w http.ResponseWriter, _ *http.Request) { reset(w) }, nil, 6, "EOF"},
		{"truncated reply", func(w http.ResponseWriter, _ *http.Request) { truncated(w) }, nil, 6, "unexpected EOF"},
		{"truncated JSON of the right length", func(w http.ResponseWriter, _ *http.Request) { status(w, 200, `{"choices":[{"mess`) }, nil, 6, "no chat completion"},
		{"not JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "hello")
		}, nil, 6, "no chat completion"},
		{"no choices", func(w http.ResponseWriter, _ *http.Request) { status(w, 200, `{"choices":[]}`) }, nil, 6, "no choices"},
		{"null choices and message", func(w http.ResponseWriter, _ *http.Request) {
			status(w, 200, `{"choices":[{"message":null}],"usage":null}`)
		}, nil, 6, "no choices"},
		{"huge reply", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			chunk := strings.Repeat("x", 1<<16)
			for range 1 << 14 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}, func(o *openai.Options) { o.ReplyBytes(1 << 20) }, 1, "larger than the limit"},
		{"slow body", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(2 * time.Millisecond)
			}
		}, func(o *openai.Options) { o.Timeout, o.Retries = 500*time.Millisecond, 1 }, 2, "no whole reply within 500ms"},
		{"no answer at all", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(o *openai.Options) { o.Timeout, o.Retries = 500*time.Millisecond, 1 }, 2, "no whole reply within 500ms"},
		{"a redirect is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, nil, 6, "status 307: a redirect to /elsewhere, which is not followed"},
		{"retries switched off", func(w http.ResponseWriter, _ *http.Request) { status(w, 500, "") }, func(o *openai.Options) { o.Retries = -1 }, 1, "after 1 tries"},
		{"a storm of 429 ends with patience", func(w http.ResponseWriter, _ *http.Request) { status(w, 429, `{"message":"slow down"}`) },
			func(o *openai.Options) { o.Patience = 2 * time.Second }, -6, "slow down"},
		{"a wait longer than patience is not begun", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			status(w, 429, `{"message":"tomorrow"}`)
		}, nil, 1, "tomorrow"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			f := newFake(t, func(w http.ResponseWriter, r *http.Request, _ seen) bool { row.handle(w, r); return true })
			o := quick(f.url())
			if row.edit != nil {
				row.edit(&o)
			}
			began := time.Now()
			_, err := client(t, o).Judge(t.Context(), request(1))
			require.ErrorIs(t, err, rollout.KindJudge)
			require.ErrorContains(t, err, row.says)
			require.NotContains(t, err.Error(), "sk-echo")
			require.Less(t, len(err.Error()), 700, "errors stay short")
			require.Less(t, time.Since(began), time.Minute)
			if row.tries < 0 {
				require.Greater(t, f.requests.Load(), -row.tries, "429 does not use up the retries")
			} else {
				require.Equal(t, row.tries, f.requests.Load())
			}
			f.CloseClientConnections()
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, req seen) bool {
		if req.Number == 1 {
			w.Header().Set("Retry-After", "0.2")
			status(w, 429, "{}")
			return true
		}
		return false
	})
	c := client(t, quick(f.url()))
	began := time.Now()
	_, err := c.Judge(t.Context(), request(1))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
	require.Equal(t, int64(1), c.Stats().RateLimited)
	require.Zero(t, c.Stats().Failures)
}

func TestWrongN(t *testing.T) {
	for _, row := range []struct {
		reason   string
		handle   func(w http.ResponseWriter, req seen) bool
		first    int // number of replies to the first call
		oneByOne bool
	}{
		{"more than asked", func(w http.ResponseWriter, req seen) bool { choices(w, 7, `\boxed{1}`); return true }, 3, false},
		{"fewer than asked", func(w http.ResponseWriter, req seen) bool { choices(w, 1, `\boxed{1}`); return true }, 1, true},
		{"n is refused", func(w http.ResponseWriter, req seen) bool {
			if req.N > 1 {
				status(w, 400, `{"message":"n > 1 is not supported"}`)
				return true
			}
			return false
		}, 1, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			f := newFake(t, func(w http.ResponseWriter, _ *http.Request, req seen) bool { return row.handle(w, req) })
			c := client(t, quick(f.url()))
			got, err := c.JudgeN(t.Context(), request(1), 3)
			require.NoError(t, err)
			require.Len(t, got, row.first)
			_, _, oneByOne := c.First()
			require.Equal(t, row.oneByOne, oneByOne)
			require.Equal(t, !row.oneByOne, c.Batches())
		})
	}
	t.Run("a bad prompt does not condemn n", func(t *testing.T) {
		f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool {
			status(w, 400, `{"message":"too long"}`)
			return true
		})
		c := client(t, quick(f.url()))
		_, err := c.JudgeN(t.Context(), request(1), 3)
		require.ErrorContains(t, err, "too long")
		_, _, oneByOne := c.First()
		require.False(t, oneByOne)
		require.Equal(t, int64(2), f.requests.Load())
	})
}

func TestGlobalBoundAndCancel(t *testing.T) {
	checkGoroutines(t)
	block := make(chan struct{})
	f := newFake(t, func(_ http.ResponseWriter, r *http.Request, _ seen) bool {
		select {
		case <-block:
		case <-r.Context().Done():
		}
		return false
	})
	o := quick(f.url())
	o.Concurrency = 5
	c := client(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var failed atomic.Int64
	for i := range 40 {
		wg.Go(func() {
			if _, err := c.Judge(ctx, request(int64(i))); err != nil {
				failed.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return f.inFlight.Load() == 5 }, 20*time.Second, time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, int64(5), f.peak.Load(), "never more in flight than the bound")
	cancel()
	wg.Wait()
	require.Equal(t, int64(40), failed.Load())
	close(block)
	inFlight, _, _ := c.First()
	require.Zero(t, inFlight)
	_, err := c.Judge(t.Context(), request(1))
	require.NoError(t, err, "a broken-off call leaves the endpoint in service")
}

func TestLeastLoadedAndEjection(t *testing.T) {
	checkGoroutines(t)
	var sick atomic.Bool
	sick.Store(true)
	bad := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ seen) bool {
		if sick.Load() {
			status(w, 503, "{}")
		}
		return sick.Load()
	})
	slow := newFake(t, func(http.ResponseWriter, *http.Request, seen) bool { time.Sleep(20 * time.Millisecond); return false })
	fast := newFake(t, nil)
	o := quick(bad.url(), slow.url(), fast.url())
	o.Ejects(3, 30*time.Millisecond, 100*time.Millisecond)
	o.Retries = 8
	c := client(t, o)
	run := func(n int) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				_, err := c.Judge(t.Context(), request(int64(i)))
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	run(300)
	require.Less(t, bad.requests.Load(), int64(60), "the sick endpoint is left alone")
	require.Greater(t, fast.requests.Load(), slow.requests.Load(), "load follows speed")
	_, ejected, _ := c.First()
	require.True(t, ejected)
	sick.Store(false)
	before := bad.requests.Load()
	require.Eventually(t, func() bool { run(30); return bad.requests.Load() > before+50 }, time.Minute, 10*time.Millisecond, "a healed endpoint takes load again")
}

// Thirty per cent of all answers are bad, in every way; each vote still ends with the text for its
// seed, or a reason.
func TestChaos(t *testing.T) {
	checkGoroutines(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, req seen) bool {
		mu.Lock()
		dice := rng.IntN(100)
		mu.Unlock()
		switch {
		case dice < 5:
			status(w, 500, "oops")
		case dice < 9:
			w.Header().Set("Retry-After-Ms", "5")
			status(w, 429, "{}")
		case dice < 13:
			reset(w)
		case dice < 17:
			truncated(w)
		case dice < 20:
			status(w, 200, `{"choices":[]}`)
		case dice < 23:
			choices(w, max(req.N, 1)+2, verdictOf(req.Seed))
		case dice < 26:
			status(w, 200, `{"choices":`)
		case dice < 28:
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
			status(w, 504, "late")
		case dice < 30:
			io.WriteString(w, strings.Repeat("y", 1<<18))
		default:
			return false
		}
		return true
	})
	o := quick(f.url())
	o.Timeout, o.Concurrency, o.Retries = time.Second, 32, 8
	o.ReplyBytes(1 << 16)
	c := client(t, o)
	var wg sync.WaitGroup
	var votes, reasons atomic.Int64
	began := time.Now()
	for i := range 400 {
		wg.Go(func() {
			r, err := c.Judge(t.Context(), request(int64(i)))
			switch {
			case err == nil && r.Text == verdictOf(int64(i)):
				votes.Add(1)
			case err == nil:
				t.Errorf("vote %d got %q", i, r.Text)
			default:
				reasons.Add(1)
				if !strings.Contains(err.Error(), "no vote") {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(400), votes.Load()+reasons.Load())
	require.Greater(t, votes.Load(), int64(360), "nearly every vote comes through")
	require.Less(t, time.Since(began), 2*time.Minute)
	t.Logf("%d votes, %d reasons, %d requests, %s", votes.Load(), reasons.Load(), f.requests.Load(), time.Since(began))
}

func TestHook(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, req seen) bool {
		if req.Number == 1 {
			status(w, 500, "")
			return true
		}
		return false
	})
	o := quick(f.url())
	h := &spans{}
	o.Hook = h
	_, err := client(t, o).JudgeN(t.Context(), request(1), 2)
	require.NoError(t, err)
	require.Equal(t, []string{"judge-1 try 0 asks 2: 500 0 votes 0 tokens false", "judge-1 try 1 asks 2: 200 2 votes 20 tokens true"}, h.lines)
}

type spans struct {
	mu    sync.Mutex
	lines []string
}

func (s *spans) Start(ctx context.Context, a openai.Attempt) (context.Context, func(openai.Outcome)) {
	return ctx, func(o openai.Outcome) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lines = append(s.lines, fmt.Sprintf("%s try %d asks %d: %d %d votes %d tokens %t", a.Model, a.Try, a.Votes, o.Status, o.Votes, o.CompletionTokens, o.Err == nil))
	}
}

func TestOptionFaultsAllAtOnce(t *testing.T) {
	_, err := openai.New(openai.Options{
		Endpoints: []string{"http://user:hunter2@h/v1", "ftp://h", "http://h/v1?key=hunter2"}, Retries: -2, Timeout: -1, Temperature: new(-0.5), TopP: new(0.0),
		Price: openai.Price{Prompt: -1},
	})
	require.ErrorIs(t, err, rollout.KindInput)
	for _, part := range []string{"user or a query", "ftp://h", "Model", "Retries", "Timeout", "Temperature", "TopP", "Price.Prompt"} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "hunter2")
}

// With a server that fails in many ways, every step of every rollout ends with the votes for its
// seeds, or with reasons.
func TestScoringOverABadServer(t *testing.T) {
	checkGoroutines(t)
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, req seen) bool {
		switch req.Number % 10 {
		case 0:
			status(w, 500, "")
		case 1:
			reset(w)
		case 2:
			choices(w, 1, verdictOf(req.Seed)) // fewer than requested, or just one
		case 3:
			status(w, 429, "{}")
		default:
			if req.Seed%5 == 0 {
				status(w, 200, `{"choices":[]}`)
				return true
			}
			return false
		}
		return true
	})
	o := quick(f.url())
	o.Retries = 3
	s, err := prm.NewScorer(client(t, o), prm.Options{Concurrency: 16})
	require.NoError(t, err)
	steps := 0
	err = s.ScoreAll(t.Context(), func(yield func(*rollout.Rollout, error) bool) {
		for i := 0; i < jobRuns && yield(jobRun(i), nil); i++ {
		}
	}, func(r *rollout.Rollout, scores []rollout.StepScore) error {
		require.Len(t, scores, jobSteps)
		for k, sc := range scores {
			steps++
			require.Equal(t, k, sc.Step)
			require.Len(t, sc.Votes, 3)
			for _, v := range sc.Votes {
				require.True(t, v.Score != nil || v.Error != "", "a vote is a score or a reason")
				require.Equal(t, v.Score == nil, v.Text == "")
			}
			if sc.Score == nil {
				require.NotEmpty(t, sc.Reason)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, jobRuns*jobSteps, steps)
}

func TestDeadServer(t *testing.T) {
	f := newFake(t, nil)
	url := f.url()
	f.Close()
	o := quick(url)
	o.Patience = 100 * time.Millisecond
	c := client(t, o)
	began := time.Now()
	for i := range 8 {
		_, err := c.Judge(t.Context(), request(int64(i)))
		require.ErrorIs(t, err, rollout.KindJudge)
		require.ErrorContains(t, err, "no vote")
	}
	require.Less(t, time.Since(began), time.Minute)
	_, ejected, _ := c.First()
	require.True(t, ejected, "the dead endpoint is ejected and probed, not hammered")
}
