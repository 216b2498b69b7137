package stream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
)

// groups returns the groups of a step and checks the metadata of its file.
func groups(t *testing.T, dir string, step int) (out []string) {
	t.Helper()
	rows, info, err := export.ReadAll(filepath.Join(dir, "steps", fmt.Sprintf("step_%d.parquet", step)))
	require.NoError(t, err)
	require.Equal(t, "r", info.Metadata["recipe"])
	require.Equal(t, "sha256:aa", info.Tokenizer)
	for _, r := range rows {
		out = append(out, r.Group)
	}
	return out
}

func files(t *testing.T, dir, folder string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// fill adds batches with the numbers from to to.
func fill(t *testing.T, s *stream.Stream, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		_, err := add(s, fmt.Sprint("g", i), int32(i))
		require.NoError(t, err)
	}
}

// A step holds its batches in order and replaces their files.
func TestSteps(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.ErrorContains(t, s.Steps(-1, 1), "expected 0 or more")
	require.NoError(t, s.Steps(3, 0))
	fill(t, s, 1, 7)
	require.NoError(t, s.Steps(3, 5), "the second one is not delivered")
	require.Equal(t, []string{"g1", "g2", "g3"}, groups(t, dir, 0))
	require.Equal(t, []string{"step_0.parquet"}, files(t, dir, "steps"))
	require.Equal(t, []string{"batch_000004.parquet", "batch_000005.parquet", "batch_000006.parquet", "batch_000007.parquet"}, files(t, dir, "data"))
	require.NoError(t, s.Steps(3, 7))
	require.NoError(t, s.Steps(3, 7), "again")
	require.Equal(t, []string{"g4", "g5", "g6"}, groups(t, dir, 1))
	require.Equal(t, []string{"batch_000007.parquet"}, files(t, dir, "data"))
	require.ErrorContains(t, s.Steps(2, 7), "its steps have 3 groups each, not 2")

	// The trainer removes the step files; another process resumes.
	require.NoError(t, os.Remove(filepath.Join(dir, "steps", "step_1.parquet")))
	require.NoError(t, s.Close())
	s = open(t, dir)
	fill(t, s, 8, 9)
	require.NoError(t, s.Steps(3, 9))
	require.Equal(t, []string{"g7", "g8", "g9"}, groups(t, dir, 2))
	require.Equal(t, []string{"step_0.parquet", "step_2.parquet"}, files(t, dir, "steps"))
	require.NoError(t, s.Close())
	s = open(t, dir)
	require.ErrorContains(t, s.Steps(2, 9), "keep their number")
	require.ErrorContains(t, s.Steps(0, 9), "--groups-per-step 3")
	require.ErrorContains(t, new(stream.Stream).Steps(2, 10), "Open")
}

// Batches that were consumed one by one cannot be combined into steps later.
func TestNoStepsOfOtherBatches(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Steps(0, 0))
	fill(t, s, 1, 2)
	require.NoError(t, s.Steps(0, 2))
	require.ErrorContains(t, s.Steps(2, 2), "its 2 batches are taken one by one")
	require.NoDirExists(t, filepath.Join(dir, "steps"))
	for _, other := range []string{`{"groups":2,"after":1,"next":1}`, `{"groups":2,"next":-1}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "steps.json"), []byte(other), 0o644))
		require.ErrorIs(t, s.Steps(2, 2), rollout.KindFormat, other)
	}
	require.Equal(t, []string{"batch_000001.parquet", "batch_000002.parquet"}, files(t, dir, "data"), "nothing is removed")
}

// A step that was killed at any point is completed later.
func TestStepsAfterAKill(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, dir string, before map[string][]byte){
		"before the step": func(t *testing.T, dir string, before map[string][]byte) {
			require.NoError(t, os.Remove(filepath.Join(dir, "steps", "step_1.parquet")))
			restore(t, dir, before)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "steps", ".step_1.parquet.17.partial"), []byte("half"), 0o600))
		},
		"before it is counted": restore,
		"before files are removed": func(t *testing.T, dir string, before map[string][]byte) {
			delete(before, "steps.json")
			delete(before, "data/batch_000003.parquet")
			restore(t, dir, before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			require.NoError(t, s.Steps(2, 0))
			fill(t, s, 1, 4)
			require.NoError(t, s.Steps(2, 3))
			before := map[string][]byte{}
			for _, name := range []string{"steps.json", "data/batch_000003.parquet", "data/batch_000004.parquet"} {
				var err error
				before[name], err = os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
			}
			require.NoError(t, s.Steps(2, 4))
			require.NoError(t, s.Close())
			want, err := os.ReadFile(filepath.Join(dir, "steps", "step_1.parquet"))
			require.NoError(t, err)
			leave(t, dir, before)

			s = open(t, dir)
			require.NoError(t, s.Steps(2, 4))
			got, err := os.ReadFile(filepath.Join(dir, "steps", "step_1.parquet"))
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, []string{"step_0.parquet", "step_1.parquet"}, files(t, dir, "steps"))
			require.Empty(t, files(t, dir, "data"))
			fill(t, s, 5, 6)
			require.NoError(t, s.Steps(2, 6))
			require.Equal(t, []string{"g5", "g6"}, groups(t, dir, 2))
		})
	}
}

func restore(t *testing.T, dir string, before map[string][]byte) {
	for name, text := range before {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

// Batches of different tokenizers are not combined into one step.
func TestStepsOfTwoModels(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Steps(2, 0))
	fill(t, s, 1, 1)
	_, err := s.Add(stream.Key{Group: "b"}, nil, func(w *export.Writer) error {
		x := row("b", 1)
		x.Tokenizer = "sha256:other"
		return w.Write(x)
	})
	require.NoError(t, err)
	require.ErrorContains(t, s.Steps(2, 2), "another tokenizer")
	require.Len(t, files(t, dir, "data"), 2, "nothing is lost")
}

// Old batches are found only in the index.
func TestOldBatchesAreForgotten(t *testing.T) {
	dir := t.TempDir()
	s, err := stream.OpenKeeping(dir, export.Options{}, 2)
	require.NoError(t, err)
	check := func(known int) {
		t.Helper()
		require.Len(t, all(t, s), 9)
		for i := 1; i <= 9; i++ {
			b, there := s.Find(stream.Key{Group: fmt.Sprint("g", i)})
			require.Equal(t, i > 9-known, there, i)
			if there {
				require.Equal(t, i, b.Seq)
			}
		}
	}
	fill(t, s, 1, 9)
	check(3)
	require.NoError(t, s.Close())
	s, err = stream.OpenKeeping(dir, export.Options{}, 4)
	require.NoError(t, err)
	check(5)
	again, err := add(s, "g8", 8)
	require.NoError(t, err)
	require.Equal(t, 8, again.Seq)
	require.NoError(t, s.Close())
}
