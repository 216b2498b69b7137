package prm_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/rollout"
)

// soFar returns r as it was after its first n steps, each with its result.
func soFar(r *rollout.Rollout, n int) *rollout.Rollout {
	c := *r
	c.Messages = slices.Clone(r.Messages[:1+2*n])
	return &c
}

// votes returns the votes in a journal, in the order of their keys, without times.
func votes(t *testing.T, path string) string {
	t.Helper()
	var all []journal.Record
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		_, body, _ := strings.Cut(line, " ")
		var rec journal.Record
		require.NoError(t, json.Unmarshal([]byte(body), &rec))
		rec.Millis = 0
		all = append(all, rec)
	}
	slices.SortFunc(all, func(a, b journal.Record) int {
		return cmp.Or(cmp.Compare(a.Rollout, b.Rollout), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Vote, b.Vote), cmp.Compare(a.Prompt, b.Prompt))
	})
	b, err := json.Marshal(all)
	require.NoError(t, err)
	return string(b)
}

// Steps judged while the agent runs have the same seeds, prompts, votes and scores, byte for byte, as
// the same rollouts judged afterwards, for any number of concurrent rollouts, any bound on calls and
// any order of answers.
func TestLiveIsScoringAfterwards(t *testing.T) {
	const rollouts = 6
	runs := make([]*rollout.Rollout, rollouts)
	for i := range runs {
		runs[i] = madeRun(i, 5+i)
		runs[i].Metadata = map[string]json.RawMessage{"problem_statement": json.RawMessage(`"the issue itself"`)}
	}
	judged := func(o prm.Options, score func(*prm.Scorer) [][]rollout.StepScore) (scores, kept string) {
		path := filepath.Join(t.TempDir(), "votes")
		j, err := journal.Open(path)
		require.NoError(t, err)
		o.Journal = j
		var mu sync.Mutex
		prompts := 0
		s := scorer(t, prm.JudgeFunc(func(_ context.Context, req prm.Request) (prm.Reply, error) {
			mu.Lock()
			defer mu.Unlock()
			prompts++
			if !strings.Contains(req.Messages[1].Content, "the issue itself") {
				return prm.Reply{}, errors.New("the judge does not see the problem statement")
			}
			return prm.Reply{Text: bySeed(req)}, nil
		}), o)
		got := score(s)
		for _, steps := range got {
			for i := range steps {
				for k := range steps[i].Votes {
					steps[i].Votes[k].Millis = 0
				}
			}
		}
		b, err := json.Marshal(got)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		return string(b), votes(t, path)
	}
	for _, o := range []prm.Options{{Concurrency: 1}, {Concurrency: 3, Aggregate: prm.Aggregate{Method: "majority"}, Votes: 5}, {}} {
		want, kept := judged(o, func(s *prm.Scorer) [][]rollout.StepScore {
			out := make([][]rollout.StepScore, rollouts)
			for i, r := range runs {
				var err error
				out[i], err = s.Score(t.Context(), r)
				require.NoError(t, err)
			}
			return out
		})
		for seed := range uint64(3) {
			got, live := judged(o, func(s *prm.Scorer) [][]rollout.StepScore {
				out := make([][]rollout.StepScore, rollouts)
				var wg sync.WaitGroup
				for i, r := range runs {
					wg.Go(func() {
						rng := rand.New(rand.NewPCG(seed, uint64(i)))
						l := s.Live(t.Context())
						defer l.Close()
						for n := 1; n <= 5+i; n++ {
							if rng.IntN(4) > 0 { // some steps are submitted late, with the next step, or never
								if err := l.Submit(soFar(r, n)); err != nil {
									t.Error(err)
								}
							}
						}
						var err error
						if out[i], err = l.Scores(r); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				return out
			})
			require.Equal(t, want, got)
			require.Equal(t, kept, live)
		}
	}
}

// Submit returns before the judge answers; a step submitted before its result is judged by its final
// state.
func TestLiveSubmitsAtOnce(t *testing.T) {
	r := madeRun(0, 3)
	gate := make(chan struct{})
	var mu sync.Mutex
	seen := map[string]int{}
	s := scorer(t, prm.JudgeFunc(func(ctx context.Context, req prm.Request) (prm.Reply, error) {
		select {
		case <-gate:
		case <-ctx.Done():
			return prm.Reply{}, ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		seen[req.Messages[1].Content]++
		return prm.Reply{Text: `\boxed{1}`}, nil
	}), prm.Options{Votes: 1, Concurrency: 1})
	l := s.Live(t.Context())
	early := soFar(r, 1)
	early.Messages = early.Messages[:2] // the reply without its result
	require.NoError(t, l.Submit(early))
	require.NoError(t, l.Submit(soFar(r, 2)))
	close(gate)
	got, err := l.Scores(r)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, step := range got {
		require.Equal(t, i, step.Step)
		require.NotNil(t, step.Score)
	}
	want, err := s.Score(t.Context(), r)
	require.NoError(t, err)
	for i := range want {
		want[i].Votes[0].Millis, got[i].Votes[0].Millis = 0, 0
	}
	require.Equal(t, want, got)
	require.Len(t, seen, 4, "the first step was asked about again, with its result")
	l.Close()
}

func TestLiveEnds(t *testing.T) {
	waits := prm.JudgeFunc(func(ctx context.Context, _ prm.Request) (prm.Reply, error) {
		<-ctx.Done()
		return prm.Reply{}, ctx.Err()
	})
	s := scorer(t, waits, prm.Options{})
	l := s.Live(t.Context())
	require.NoError(t, l.Submit(madeRun(0, 2)))
	require.ErrorContains(t, l.Submit(madeRun(1, 2)), "run-000")
	l.Close()
	_, err := l.Scores(madeRun(0, 2))
	require.ErrorIs(t, err, context.Canceled)
	gone := scorer(t, prm.JudgeFunc(func(context.Context, prm.Request) (prm.Reply, error) { return prm.Reply{}, errors.New("no route") }), prm.Options{StopAfter: 2})
	l = gone.Live(t.Context())
	require.NoError(t, l.Submit(madeRun(0, 4)))
	_, err = l.Scores(madeRun(0, 4))
	require.ErrorContains(t, err, "no route")
	var zero prm.Live
	require.Error(t, zero.Submit(madeRun(0, 1)))
	zero.Close()
	require.Error(t, l.Submit(nil))
}

// Steps are judged while the agent works.
func ExampleLive() {
	judge := prm.JudgeFunc(func(context.Context, prm.Request) (prm.Reply, error) { return prm.Reply{Text: `\boxed{1}`}, nil })
	s, err := prm.NewScorer(judge, prm.Options{})
	if err != nil {
		panic(err)
	}
	r := &rollout.Rollout{ID: "task-7#0", Messages: []rollout.Message{{Role: rollout.RoleUser, Content: "fix the parser"}}}
	l := s.Live(context.Background())
	defer l.Close()
	for _, command := range []string{"make test", "sed -i s/a/b/ parse.go"} {
		r.Messages = append(r.Messages, rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy, Content: "```bash\n" + command + "\n```"},
			rollout.Message{Role: rollout.RoleUser, Content: "ok"})
		if err := l.Submit(r); err != nil { // the agent continues
			panic(err)
		}
	}
	scores, err := l.Scores(r)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(scores), *scores[1].Score)
	// Output: 2 1
}
