package prm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/rollout"
)

// madeRuns returns a stream of n rollouts with the given number of steps.
func madeRuns(n, steps int) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		for i := range n {
			if !yield(madeRun(i, steps), nil) {
				return
			}
		}
	}
}

func madeRun(i, steps int) *rollout.Rollout {
	r := &rollout.Rollout{ID: fmt.Sprintf("run-%03d", i), Messages: []rollout.Message{{Role: rollout.RoleUser, Content: fmt.Sprint("task ", i)}}}
	for s := range steps {
		r.Messages = append(r.Messages,
			rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: fmt.Sprintf("```bash\ncmd %d\n```", s)},
			rollout.Message{Role: rollout.RoleUser, Content: fmt.Sprint("result ", s)})
	}
	return r
}

// bySeed returns an answer that depends only on the seed.
func bySeed(req prm.Request) string {
	switch req.Seed % 4 {
	case 0:
		return `\boxed{-1}`
	case 1:
		return "no verdict"
	}
	return `\boxed{1}`
}

func collect(t testing.TB, s *prm.Scorer, in iter.Seq2[*rollout.Rollout, error]) string {
	t.Helper()
	var ids []string
	out := map[string][]rollout.StepScore{}
	require.NoError(t, s.ScoreAll(context.Background(), in, func(r *rollout.Rollout, scores []rollout.StepScore) error {
		for i := range scores {
			for k := range scores[i].Votes {
				scores[i].Votes[k].Millis = 0
			}
		}
		ids = append(ids, r.ID)
		out[r.ID] = scores
		return nil
	}))
	b, err := json.Marshal([]any{ids, out})
	require.NoError(t, err)
	return string(b)
}

func scorer(t testing.TB, j prm.Judge, o prm.Options) *prm.Scorer {
	t.Helper()
	s, err := prm.NewScorer(j, o)
	require.NoError(t, err)
	return s
}

func TestScoresDoNotDependOnConcurrencyOrTiming(t *testing.T) {
	judge := prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
		time.Sleep(time.Duration(req.Seed%7) * 100 * time.Microsecond)
		if req.Seed%11 == 0 {
			return prm.Reply{}, errors.New("connection reset")
		}
		return prm.Reply{Text: bySeed(req)}, nil
	})
	for _, agg := range []prm.Aggregate{{}, {Method: "majority", Quorum: 2}} {
		var first string
		for _, c := range []int{1, 2, 7, 64} {
			got := collect(t, scorer(t, judge, prm.Options{Concurrency: c, Votes: 5, Aggregate: agg}), madeRuns(12, 4))
			if first == "" {
				first = got
			}
			require.Equal(t, first, got, "concurrency %d", c)
		}
	}
}

func TestOneBoundOverAllCalls(t *testing.T) {
	var now, peak, calls atomic.Int64
	judge := prm.JudgeFunc(func(context.Context, prm.Request) (prm.Reply, error) {
		n := now.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		time.Sleep(200 * time.Microsecond)
		now.Add(-1)
		calls.Add(1)
		return prm.Reply{Text: `\boxed{1}`}, nil
	})
	s := scorer(t, judge, prm.Options{Concurrency: 5, Votes: 7})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if _, err := s.Score(t.Context(), madeRun(i, 4)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(6*4*7), calls.Load())
	require.Equal(t, int64(5), peak.Load(), "the bound is used and kept, though a step asks for more")
}

func TestEarlyStopSavesVotesAndKeepsScores(t *testing.T) {
	var calls atomic.Int64
	judge := prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
		calls.Add(1)
		return prm.Reply{Text: bySeed(req)}, nil
	})
	all := scorer(t, judge, prm.Options{Votes: 9, Rule: prm.Rule{}})
	majority := prm.Options{Votes: 9, Aggregate: prm.Aggregate{Method: "majority"}}
	early := scorer(t, judge, majority)
	r := madeRun(1, 30)
	full, err := all.Score(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, int64(270), calls.Swap(0))
	got, err := early.Score(t.Context(), r)
	require.NoError(t, err)
	require.Less(t, calls.Load(), int64(250))
	for i := range got {
		want, _ := majority.Aggregate.Score(full[i].Votes, 9)
		require.Equal(t, want, got[i].Score)
		for k, v := range got[i].Votes {
			require.Equal(t, full[i].Votes[k].Text, v.Text, "the votes asked for are the first ones of the full set")
		}
	}
}

func TestStepPoliciesKeepPlaces(t *testing.T) {
	judge := prm.JudgeFunc(func(context.Context, prm.Request) (prm.Reply, error) { return prm.Reply{Text: `\boxed{1}`}, nil })
	r := agentRun()
	r.Turns = append(r.Turns, rollout.Turn{Message: -1, Step: 4})
	scores, err := scorer(t, judge, prm.Options{Steps: prm.StepOptions{CommandLess: "skip", Submit: "neutral"}}).Score(t.Context(), r)
	require.NoError(t, err)
	var got []string
	for _, s := range scores {
		v := "none"
		if s.Score != nil {
			v = fmt.Sprint(*s.Score)
		}
		got = append(got, fmt.Sprintf("%d: %s, %d votes, %q", s.Step, v, len(s.Votes), s.Reason))
	}
	require.Equal(t, []string{
		`0: 1, 3 votes, ""`,
		`1: none, 0 votes, "skipped: command-less step"`,
		`2: 1, 3 votes, ""`,
		`3: 0, 0 votes, "neutral: submit step"`,
		`4: none, 0 votes, "the text of this step was not recorded"`,
	}, got)
	require.True(t, prm.Skipped(scores[1]))
	require.False(t, prm.Skipped(scores[4]))
}

func TestFailedVotesAreNoVotes(t *testing.T) {
	judge := prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
		switch {
		case req.ID.Step == 1:
			return prm.Reply{}, errors.New("router down")
		case req.ID.Vote == 0:
			return prm.Reply{Text: "I think", FinishReason: "length"}, nil
		}
		return prm.Reply{Text: `\boxed{-1}`, CompletionTokens: 9}, nil
	})
	scores, err := scorer(t, judge, prm.Options{}).Score(t.Context(), madeRun(0, 2))
	require.NoError(t, err)
	require.Equal(t, -1.0, *scores[0].Score)
	require.Contains(t, scores[0].Votes[0].Error, "cut off by its length limit")
	require.Equal(t, "I think", scores[0].Votes[0].Text, "the raw text is kept")
	require.Equal(t, 9, scores[0].Votes[1].Tokens)
	require.Nil(t, scores[1].Score)
	require.Contains(t, scores[1].Reason, "3× router down")

	_, err = scorer(t, judge, prm.Options{StopAfter: 2, Concurrency: 1}).Score(t.Context(), madeRun(0, 5))
	require.ErrorIs(t, err, rollout.KindJudge)
	require.ErrorContains(t, err, "2 votes in a row failed")
}

// batcher samples n votes per call, sometimes fewer.
type batcher struct {
	calls          atomic.Int64
	short, refuses bool
}

func (b *batcher) Judge(ctx context.Context, req prm.Request) (prm.Reply, error) {
	r, err := b.JudgeN(ctx, req, 1)
	return r[0], err
}

func (b *batcher) Batches() bool { return !b.refuses }

func (b *batcher) JudgeN(_ context.Context, req prm.Request, n int) ([]prm.Reply, error) {
	b.calls.Add(1)
	if b.short && n > 1 {
		n--
	}
	replies := make([]prm.Reply, n)
	for i := range replies {
		replies[i].Text = fmt.Sprintf("seed %d choice %d \\boxed{1}", req.Seed, i)
	}
	return replies, nil
}

func TestBatches(t *testing.T) {
	for _, row := range []struct {
		b     *batcher
		o     prm.Options
		calls int64
	}{
		{&batcher{}, prm.Options{}, 4}, {&batcher{short: true}, prm.Options{}, 8}, {&batcher{refuses: true}, prm.Options{}, 12},
	} {
		b := row.b
		scores, err := scorer(t, b, row.o).Score(t.Context(), madeRun(0, 4))
		require.NoError(t, err)
		require.Equal(t, row.calls, b.calls.Load())
		for _, s := range scores {
			require.Len(t, s.Votes, 3)
			require.Equal(t, 1.0, *s.Score)
		}
	}
}

// A batch is one call; its missing votes are requested within the bound too.
func TestBoundHoldsForBatches(t *testing.T) {
	b := &slowBatcher{batcher: batcher{short: true}}
	s := scorer(t, b, prm.Options{Concurrency: 3, Votes: 4})
	collect(t, s, madeRuns(6, 3))
	require.Equal(t, int64(3), b.peak.Load())
}

// slowBatcher records how many of its calls overlap.
type slowBatcher struct {
	batcher
	now, peak atomic.Int64
}

func (b *slowBatcher) Judge(ctx context.Context, req prm.Request) (prm.Reply, error) {
	r, err := b.JudgeN(ctx, req, 1)
	return r[0], err
}

func (b *slowBatcher) JudgeN(ctx context.Context, req prm.Request, n int) ([]prm.Reply, error) {
	now := b.now.Add(1)
	defer b.now.Add(-1)
	for p := b.peak.Load(); now > p && !b.peak.CompareAndSwap(p, now); p = b.peak.Load() {
	}
	time.Sleep(200 * time.Microsecond)
	return b.batcher.JudgeN(ctx, req, n)
}

func TestVotesOfAStepTogetherStepsInOrder(t *testing.T) {
	var mu sync.Mutex
	var order []string
	judge := prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
		mu.Lock()
		order = append(order, fmt.Sprintf("%s/%d", req.ID.Rollout, req.ID.Step))
		mu.Unlock()
		return prm.Reply{Text: `\boxed{1}`}, nil
	})
	collect(t, scorer(t, judge, prm.Options{Concurrency: 3}), madeRuns(3, 3))
	for i := range order {
		require.Equal(t, fmt.Sprintf("run-%03d/%d", i/9, i/3%3), order[i], "with room for one step, votes start step by step")
	}
}

func TestJournalAsksNothingTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "votes")
	var calls atomic.Int64
	var limit atomic.Int64
	limit.Store(100)
	judge := prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
		if calls.Add(1) > limit.Load() {
			return prm.Reply{}, errors.New("out of quota")
		}
		return prm.Reply{Text: bySeed(req), CompletionTokens: 5}, nil
	})
	run := func(o prm.Options) string {
		j, err := journal.Open(path)
		require.NoError(t, err)
		o.Journal = j
		out := collect(t, scorer(t, judge, o), madeRuns(10, 5))
		require.NoError(t, j.Close())
		return out
	}
	run(prm.Options{})
	require.Equal(t, int64(150), calls.Swap(0))
	limit.Store(1 << 40)
	second := run(prm.Options{})
	require.Equal(t, int64(50), calls.Swap(0), "only the failed votes are asked again")
	require.Equal(t, second, run(prm.Options{}), "same inputs and journal, same scores")
	require.Zero(t, calls.Load())
	require.NotEqual(t, second, run(prm.Options{Rule: prm.Rule{Kind: "tail"}, Aggregate: prm.Aggregate{Quorum: 3}}), "another rule reads the same votes")
	require.Zero(t, calls.Load())
	run(prm.Options{Votes: 5})
	require.Equal(t, int64(100), calls.Swap(0), "more votes ask for the new ones only")
	run(prm.Options{Identity: "another model"})
	require.Equal(t, int64(150), calls.Swap(0))
	run(prm.Options{Seed: 1})
	require.Equal(t, int64(150), calls.Swap(0))
	run(prm.Options{Prompt: prm.Prompt{System: "be strict"}})
	require.Equal(t, int64(150), calls.Swap(0))
}

func TestRunEndsCleanly(t *testing.T) {
	before := runtime.NumGoroutine()
	boom := rollout.Errorf(rollout.KindFormat, rollout.Where{Line: 3}, "bad line")
	slow := prm.JudgeFunc(func(ctx context.Context, _ prm.Request) (prm.Reply, error) {
		select {
		case <-ctx.Done():
			return prm.Reply{}, ctx.Err()
		case <-time.After(time.Millisecond):
			return prm.Reply{Text: `\boxed{1}`}, nil
		}
	})
	s := scorer(t, slow, prm.Options{Concurrency: 4})
	handed := 0
	err := s.ScoreAll(t.Context(), func(yield func(*rollout.Rollout, error) bool) {
		_ = yield(madeRun(0, 3), nil) && yield(madeRun(1, 3), nil) && yield(nil, boom) && yield(madeRun(2, 3), nil)
	}, func(*rollout.Rollout, []rollout.StepScore) error { handed++; return nil })
	require.ErrorIs(t, err, rollout.KindFormat)
	require.Equal(t, 2, handed, "rollouts before the bad one are handed over")

	stop := errors.New("disk full")
	err = s.ScoreAll(t.Context(), madeRuns(50, 3), func(*rollout.Rollout, []rollout.StepScore) error { return stop })
	require.ErrorIs(t, err, stop)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Millisecond, cancel)
	err = s.ScoreAll(ctx, madeRuns(1000, 3), func(*rollout.Rollout, []rollout.StepScore) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, rollout.KindJudge)
	_, err = s.Score(ctx, madeRun(0, 2))
	require.ErrorIs(t, err, context.Canceled)
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "goroutines left")
	}
}

func TestScorerFaultsAllAtOnce(t *testing.T) {
	_, err := prm.NewScorer(prm.JudgeFunc(nil), prm.Options{Votes: -1, Concurrency: -1, Rule: prm.Rule{Tail: -1}, Aggregate: prm.Aggregate{Quorum: 9}})
	require.ErrorIs(t, err, rollout.KindInput)
	for _, part := range []string{"Options.Votes", "Options.Concurrency", "Rule.Tail", "Quorum"} {
		require.ErrorContains(t, err, part)
	}
	_, err = prm.NewScorer(nil, prm.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
}

// A nil rollout ends a run with an error, and so does a zero Scorer.
func TestNothingToScore(t *testing.T) {
	s, err := prm.NewScorer(prm.JudgeFunc(func(context.Context, prm.Request) (prm.Reply, error) { return prm.Reply{}, nil }), prm.Options{})
	require.NoError(t, err)
	_, err = s.Score(t.Context(), nil)
	require.ErrorIs(t, err, rollout.KindInput)
	one := func(yield func(*rollout.Rollout, error) bool) { yield(nil, nil) }
	emit := func(*rollout.Rollout, []rollout.StepScore) error { return errors.New("handed over") }
	require.ErrorContains(t, s.ScoreAll(t.Context(), one, emit), "the rollout is nil")
	var none prm.Scorer
	_, err = none.Score(t.Context(), &rollout.Rollout{ID: "a"})
	require.ErrorContains(t, err, "NewScorer")
	require.ErrorContains(t, none.ScoreAll(t.Context(), one, emit), "NewScorer")
}

func TestARolloutThatIsNilAndAHugeBoundAreNoPanic(t *testing.T) {
	s, err := prm.NewScorer(prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
		return prm.Reply{Text: bySeed(req)}, nil
	}), prm.Options{Concurrency: 1 << 62})
	require.NoError(t, err)
	require.NotEmpty(t, collect(t, s, madeRuns(3, 2)))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.Score(ended, nil)
	require.ErrorIs(t, err, context.Canceled)
}
