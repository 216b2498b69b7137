package spool

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
)

// runsOf returns a sequence of long runs, with log probabilities and versions.
func runsOf(rng *rand.Rand, runs int) rollout.Sequence {
	var s rollout.Sequence
	for range runs {
		source, turn, flags, version := rng.Int32N(3)-1, rng.Int32N(2)-1, rollout.Flag(rng.IntN(4))<<1, rng.Int32N(2)-1
		for range 40 + rng.IntN(1<<(2+rng.IntN(8))) {
			s.IDs, s.Source, s.Turn, s.Flags = append(s.IDs, rng.Int32N(1000)), append(s.Source, source), append(s.Turn, turn), append(s.Flags, flags)
			s.Version, s.Logprob = append(s.Version, version), append(s.Logprob, -rng.Float32())
		}
	}
	return s
}

func TestRunsAreTheRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		seq := runsOf(rng, 1+rng.IntN(9))
		row, ok := Runs(&seq)
		require.True(t, ok)
		require.EqualValues(t, 1, row.Lens[0], "the first token alone")
		require.Equal(t, seq.Len(), row.Len())
		require.Equal(t, seq, row.Whole().Sequence)

		// The result is the same when the tokens are added in parts of any size.
		parts := Row{Tokens: seq.IDs}
		for at := 0; at < seq.Len(); {
			to := min(seq.Len(), at+1+rng.IntN(100))
			part, err := seq.Slice(at, to)
			require.NoError(t, err)
			require.True(t, parts.Extend(rollout.Columns{IDs: part.IDs, Source: part.Source, Flags: part.Flags, Turn: part.Turn, Version: part.Version}))
			at = to
		}
		require.Equal(t, row.Lens, parts.Lens)
		require.Equal(t, row.Sequence.IDs, parts.Sequence.IDs)
		require.Equal(t, row.Flags, parts.Flags)

		// Finish gives the same rows as finishing the plain row.
		row.Weight = make([]float32, len(row.Lens))
		for i := range row.Weight[1:] {
			row.Weight[1+i] = float32(rng.IntN(2))
		}
		finished, whole := rollout.FinishRows([]rollout.Sample{row.Sample}), rollout.FinishRows([]rollout.Sample{row.Whole()})
		require.Len(t, finished, len(whole))
		for i := range finished {
			got := row.Finish(finished[i])
			require.Equal(t, whole[i].Trained(), got.Trained())
			got.RolloutMaskSum = whole[i].RolloutMaskSum // FinishRows sets it over all rows
			require.Equal(t, whole[i], got.Whole())

			s := New(t.TempDir(), 0)
			require.NoError(t, s.Add(1, got))
			require.NoError(t, s.Each(1, func(r Row) error {
				require.Equal(t, got.Whole(), r.Whole(), "through the file")
				return nil
			}))
			s.Close()
		}
	}
}

// A queue returns the rows that were added, even if the caller reuses their tokens.
func TestQueues(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		queues := [3]Queue{}
		want := [3][]rollout.Sample{}
		for k := range queues {
			queues[k] = Queue{Tokens: 2000, Prefixes: k == 2, Open: func() *Spool { return New(t.TempDir(), 1<<20) }}
			for range rng.IntN(4) {
				seq := runsOf(rng, 1+rng.IntN(9))
				row, ok := Runs(&seq)
				require.True(t, ok)
				want[k] = append(want[k], row.Whole())
				require.NoError(t, queues[k].Add(row))
				clear(row.Tokens) // the caller may reuse them
			}
		}
		for k := range queues {
			var got []rollout.Sample
			require.NoError(t, queues[k].Each(func(r Row) error { got = append(got, r.Whole()); return nil }))
			require.Equal(t, want[k], got)
		}
	}
}

func TestShortRunsAreNone(t *testing.T) {
	var seq rollout.Sequence
	for i := range int32(1000) {
		seq.IDs, seq.Source, seq.Turn, seq.Flags = append(seq.IDs, i), append(seq.Source, i/10), append(seq.Turn, -1), append(seq.Flags, 0)
	}
	_, ok := Runs(&seq)
	require.False(t, ok)
}
