package turnpack_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward/weights"
	"github.com/turnpack/turnpack/rollout/jsonl"
	"github.com/turnpack/turnpack/tokenize"
)

// trainerBatch is a dump with what the trainers' own functions made of it, by
// internal/oracle/diff_recipes.py: the advantage of each rollout that trains, by recipe,
// and the loss weight of the trained tokens of each row of a step, by aggregation.
type trainerBatch struct {
	Dump       []json.RawMessage
	Advantages map[string]map[string]float64
	Weights    map[string]map[string]float64
}

func trainerBatches(t *testing.T) (out []trainerBatch) {
	f, err := os.Open(filepath.Join("recipe", "testdata", "batches.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<22)
	for s.Scan() {
		var b trainerBatch
		require.NoError(t, json.Unmarshal(s.Bytes(), &b))
		out = append(out, b)
	}
	require.NoError(t, s.Err())
	require.NotEmpty(t, out)
	return out
}

func (b trainerBatch) rollouts(t *testing.T) (out turnpack.Slice) {
	var text bytes.Buffer
	for _, line := range b.Dump {
		text.Write(append(line, '\n'))
	}
	for r, err := range jsonl.NewReader(&text, jsonl.Options{}).All() {
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

func TestBatchesOfTrainers(t *testing.T) {
	for n, b := range trainerBatches(t) {
		require.Len(t, b.Advantages, 10)
		src := b.rollouts(t)
		for name, want := range b.Advantages {
			r, err := recipe.Named(name)
			require.NoError(t, err)
			p, err := turnpack.Pipeline{Model: model(t)}.With(r)
			require.NoError(t, err)
			var dst rows
			_, err = p.Run(t.Context(), src, &dst)
			require.NoError(t, err)
			got := map[string]float64{}
			for _, row := range dst.got {
				got[row.Rollout] = *row.Advantage
			}
			require.Len(t, got, len(want), "batch %d, %s", n, name)
			for id, advantage := range want {
				require.Contains(t, got, id, name)
				require.InEpsilon(t, 1e3+advantage, 1e3+got[id], 1e-9, "batch %d, %s, %s: %g, not %g", n, name, id, got[id], advantage)
			}
		}
	}
}

func TestLossWeightsOfTrainers(t *testing.T) {
	for n, b := range trainerBatches(t) {
		var dst rows
		_, err := turnpack.Pipeline{Model: model(t), Encode: tokenize.Options{Mode: tokenize.PerStep}}.Run(t.Context(), b.rollouts(t), &dst)
		require.NoError(t, err)
		all := make([]weights.Row, len(dst.got))
		for i := range dst.got {
			all[i] = weights.RowOf(&dst.got[i].Sequence)
		}
		require.GreaterOrEqual(t, len(b.Weights), 10)
		for name, want := range b.Weights {
			how, ok := weights.Preset(name)
			require.True(t, ok, name)
			got, err := weights.PerRow(all, how)
			require.NoError(t, err)
			require.Len(t, want, len(all))
			for i, row := range dst.got {
				require.InEpsilon(t, want[row.ID], got[i], 1e-6, "batch %d, %s, %s", n, name, row.ID)
			}
		}
	}
}
