package prm_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm"
	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/rollout"
)

func openJournal(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// named is a judge with an identity.
type named struct {
	prm.JudgeFunc
	name string
}

func (n named) Identity() string { return n.name }

// Score, like ScoreAll, returns scores after their votes are on stable storage.
func TestScoreSyncsItsVotes(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "votes"))
	s := scorer(t, prm.JudgeFunc(func(context.Context, prm.Request) (prm.Reply, error) { return prm.Reply{Text: `\boxed{1}`}, nil }), prm.Options{Journal: j})
	_, err := s.Score(t.Context(), madeRun(1, 4))
	require.NoError(t, err)
	require.Equal(t, journal.Stats{Votes: 12}, j.Stats())
}

// Votes of one judge are not reused for a judge with another identity.
func TestJudgeNamesItself(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "votes"))
	asked := map[string]int{}
	score := func(name string, o prm.Options) {
		o.Journal, o.Concurrency = j, 1
		_, err := scorer(t, named{func(context.Context, prm.Request) (prm.Reply, error) {
			asked[name]++
			return prm.Reply{Text: `\boxed{1}`}, nil
		}, name}, o).Score(t.Context(), madeRun(1, 2))
		require.NoError(t, err)
	}
	for range 2 {
		score("a", prm.Options{})
		score("b", prm.Options{})
		score("c", prm.Options{Identity: "a"}) // Options.Identity takes precedence
	}
	require.Equal(t, map[string]int{"a": 6, "b": 6}, asked)
}

// A run ended by StopAfter has journaled the failures that ended it.
func TestStoppedRunJournalsItsFailures(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "votes"))
	s := scorer(t, prm.JudgeFunc(func(context.Context, prm.Request) (prm.Reply, error) {
		return prm.Reply{}, errors.New("no route to host")
	}),
		prm.Options{Journal: j, StopAfter: 2, Concurrency: 1})
	_, err := s.Score(t.Context(), madeRun(1, 3))
	require.ErrorContains(t, err, "no route to host")
	require.GreaterOrEqual(t, j.Stats().Failed, 2)
}

// A wave of votes that the journal holds counts as a whole, as it did when it was asked for, though its
// first votes alone leave nothing to decide.
func TestResumedStepsHaveTheSameVotes(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "votes"))
	score := func() []rollout.StepScore {
		s := scorer(t, prm.JudgeFunc(func(_ context.Context, r prm.Request) (prm.Reply, error) {
			return prm.Reply{Text: map[bool]string{true: `\boxed{1}`}[r.ID.Vote == 4], Latency: 1}, nil
		}), prm.Options{Journal: j, Votes: 5, Aggregate: prm.Aggregate{Method: "majority", Quorum: 2}})
		scores, err := s.Score(t.Context(), madeRun(1, 1))
		require.NoError(t, err)
		return scores
	}
	first := score()
	require.Len(t, first[0].Votes, 5)
	require.Equal(t, first, score())
}
