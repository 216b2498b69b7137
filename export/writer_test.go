package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
)

func write(t testing.TB, rows []rollout.Sample, o export.Options) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, o)
	require.NoError(t, err)
	for _, s := range rows {
		require.NoError(t, w.Write(s))
	}
	require.NoError(t, w.Close())
	require.EqualValues(t, buf.Len(), w.Stats().Bytes)
	return buf.Bytes()
}

func readBytes(t testing.TB, data []byte) ([]rollout.Sample, export.Info) {
	t.Helper()
	r, err := export.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	var rows []rollout.Sample
	for {
		s, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, r.Info()
		}
		require.NoError(t, err)
		rows = append(rows, s)
	}
}

// asRead returns a written row as it is read back.
func asRead(s rollout.Sample) rollout.Sample {
	s.Source = make([]int32, s.Len())
	for i := range s.Source {
		s.Source[i] = -1
	}
	s.Flags = append([]rollout.Flag{}, s.Flags...)
	for i, f := range s.Flags {
		s.Flags[i] = f & rollout.FlagSampled
	}
	s.Reward, s.OutcomeReward = float64(float32(s.Reward)), float64(float32(s.OutcomeReward))
	return s
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(10) {
		rows := fixture(t, seed, 12)
		data := write(t, rows, export.Options{Estimator: "grpo", Metadata: map[string]string{"run": "a"}, GroupRows: 10})
		got, info := readBytes(t, data)
		require.Equal(t, len(rows), len(got), "seed %d", seed)
		for i := range rows {
			require.Equal(t, asRead(rows[i]), got[i], "seed %d row %d", seed, i)
			require.NoError(t, got[i].Check())
		}
		require.Equal(t, export.Info{SchemaVersion: "1", Columns: export.Columns{Logprobs: true, Advantages: true, Versions: true, Advantage: true},
			Tokenizer: "sha256:aa", Template: "sha256:bb", Estimator: "grpo", Metadata: map[string]string{"run": "a"}, Rows: int64(len(rows))}, info)
		require.Equal(t, data, write(t, rows, export.Options{Estimator: "grpo", Metadata: map[string]string{"run": "a"}, GroupRows: 10}), "the bytes follow from the rows")
		for _, f := range []string{"arrow", "arrow-stream"} {
			for _, level := range []int{0, -1} {
				again, other := readBytes(t, write(t, rows, export.Options{Format: f, Estimator: "grpo", Metadata: map[string]string{"run": "a"}, GroupRows: 10, ZstdLevel: level}))
				require.Equal(t, got, again, "format %d", f)
				if f == "arrow-stream" {
					require.EqualValues(t, -1, other.Rows)
					other.Rows = info.Rows
				}
				require.Equal(t, info, other)
			}
		}
		require.Equal(t, data, write(t, got, export.Options{Estimator: "grpo", Metadata: map[string]string{"run": "a"}, GroupRows: 10}), "what was read writes the same file")
	}
}

func TestUnusedColumnsAreNull(t *testing.T) {
	rows := fixture(t, 3, 3)
	got, info := readBytes(t, write(t, rows, export.Options{Columns: &export.Columns{}}))
	require.Equal(t, export.Columns{}, info.Columns)
	for _, s := range got {
		require.Nil(t, s.Logprob)
		require.Nil(t, s.Credit)
		require.Nil(t, s.Version)
		require.Nil(t, s.Advantage)
	}
}

func TestWeightsColumn(t *testing.T) {
	rows := fixture(t, 4, 2)
	for i := range rows {
		w := append([]float32{}, rows[i].Weight...)
		for t := range w {
			w[t] *= 0.25
		}
		rows[i].Weight = w
	}
	got, info := readBytes(t, write(t, rows, export.Options{}))
	require.True(t, info.Columns.Weights)
	require.Equal(t, rows[0].Weight, got[0].Weight)
}

// Sampled but untrained tokens keep their log probability in the sequence; the file has 0 for
// them.
func TestLogprobsAreZeroWhereMasked(t *testing.T) {
	rows := fixture(t, 5, 1)
	s := rows[0]
	w := append([]float32{}, s.Weight...)
	first := s.PromptLen
	w[first] = 0
	s.Weight = w
	s.RolloutMaskSum, s.IsLast = int64(s.Trained()), true
	require.Negative(t, s.Logprob[first])
	got, _ := readBytes(t, write(t, []rollout.Sample{s}, export.Options{}))
	require.Zero(t, got[0].Logprob[first])
	require.Zero(t, got[0].Credit[first])
}

// Each row breaks one rule of a valid file.
func TestRefusals(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		change func(rows []rollout.Sample) []rollout.Sample
		column string
		rule   string
	}{
		{"log probabilities shorter than the ids", edit(0, func(s *rollout.Sample) { s.Logprob = s.Logprob[1:] }), col.Logprobs, "aligned"},
		{"no weights at all", edit(0, func(s *rollout.Sample) { s.Weight = nil }), col.LossMask, "aligned"},
		{"weights longer than the ids", edit(0, func(s *rollout.Sample) { s.Weight = append(s.Weight, 1) }), col.Weights, "aligned"},
		{"tokens after the last trained one", edit(1, func(s *rollout.Sample) { s.Weight = maskLast(s.Weight) }), col.InputIDs, "tail"},
		{"nothing trained", edit(1, func(s *rollout.Sample) { s.Weight = make([]float32, s.Len()) }), col.LossMask, "trained"},
		{"column in the first row only", edit(1, func(s *rollout.Sample) { s.Version = nil }), col.Versions, "columns"},
		{"advantage in the first row only", edit(1, func(s *rollout.Sample) { s.Advantage = nil }), col.Advantage, "columns"},
		{"column in a later row only", edit(0, func(s *rollout.Sample) { s.Logprob = nil }), col.Logprobs, "columns"},
		{"weights in a later row only", edit(1, func(s *rollout.Sample) { s.Weight = scale(s.Weight, 0.5) }), col.Weights, "columns"},
		{"a group comes back", func(r []rollout.Sample) []rollout.Sample { return append(r[:6:6], withRollout(r[0], "late")) }, col.GroupID, "order"},
		{"a rollout comes back", func(r []rollout.Sample) []rollout.Sample { return []rollout.Sample{r[0], r[1], r[2], r[3], r[0]} }, col.RolloutID, "order"},
		{"rows of a rollout out of order", func(r []rollout.Sample) []rollout.Sample { return []rollout.Sample{r[1], r[0]} }, col.SampleIndex, "order"},
		{"last row not marked", edit(1, func(s *rollout.Sample) { s.IsLast = false }), "is_last", "order"},
		{"row after the last", edit(0, func(s *rollout.Sample) { s.IsLast = true }), "is_last", "order"},
		{"mask sum of another run", func(r []rollout.Sample) []rollout.Sample { r[0].RolloutMaskSum++; r[1].RolloutMaskSum++; return r }, col.RolloutMaskSum, "order"},
		{"mask sums differ", edit(1, func(s *rollout.Sample) { s.RolloutMaskSum++ }), col.RolloutMaskSum, "order"},
		{"two rewards in a rollout", edit(1, func(s *rollout.Sample) { s.Reward++ }), "reward", "order"},
		{"two rollouts with one index", edit(2, func(s *rollout.Sample) { s.RolloutIndex = 0 }), col.RolloutIndex, "order"},
		{"a rollout in two groups", edit(1, func(s *rollout.Sample) { s.Group = "other" }), col.GroupID, "order"},
		{"a rollout under two indices", edit(1, func(s *rollout.Sample) { s.RolloutIndex = 7 }), col.RolloutIndex, "order"},
		{"a row left out", edit(1, func(s *rollout.Sample) { s.SampleIndex, s.ID = 2, "" }), col.SampleIndex, "order"},
		{"two outcomes in a rollout", edit(1, func(s *rollout.Sample) { s.OutcomeReward++ }), col.OutcomeReward, "order"},
		{"first token trained", edit(0, func(s *rollout.Sample) { s.Weight = ones(s.Len()) }), col.LossMask, "prompt"},
		{"prompt_len past the first trained token", edit(0, func(s *rollout.Sample) { s.PromptLen++ }), "prompt_len", "prompt"},
		{"prompt_len 0", edit(0, func(s *rollout.Sample) { s.PromptLen = 0 }), "prompt_len", "prompt"},
		{"probability instead of its logarithm", edit(0, func(s *rollout.Sample) { s.Logprob = ones(s.Len()) }), col.Logprobs, "sampling"},
		{"log probability not a number", edit(0, func(s *rollout.Sample) { s.Logprob = scale(s.Logprob, float32(nan)) }), col.Logprobs, "sampling"},
		{"temperature not a number", edit(0, func(s *rollout.Sample) { s.Temperature = float32(nan) }), col.Temperature, "sampling"},
		{"version below -1", edit(0, func(s *rollout.Sample) { s.Version = append([]int32{-2}, s.Version[1:]...) }), col.Versions, "sampling"},
		{"reward not a number", edit(0, func(s *rollout.Sample) { s.Reward = nan }), "reward", "identity"},
		{"reward beyond float32", edit(0, func(s *rollout.Sample) { s.Reward = 1e300 }), "reward", "identity"},
		{"advantage not a number", edit(0, func(s *rollout.Sample) { s.Advantage = &nan }), col.Advantage, "advantage"},
		{"per-token advantage not a number", edit(0, func(s *rollout.Sample) { s.Credit = scale(s.Credit, float32(nan)) }), col.Advantages, "advantage"},
		{"negative weight", edit(0, func(s *rollout.Sample) { s.Weight = scale(s.Weight, -1) }), col.Weights, "weights"},
		{"negative id", edit(0, func(s *rollout.Sample) { s.IDs = append([]int32{-5}, s.IDs[1:]...) }), col.InputIDs, "identity"},
		{"negative index of a row", edit(0, func(s *rollout.Sample) { s.SampleIndex, s.ID = -1, "" }), col.SampleIndex, "identity"},
		{"negative index of a rollout", edit(0, func(s *rollout.Sample) { s.RolloutIndex = -1 }), col.RolloutIndex, "identity"},
		{"steps that are no range", edit(0, func(s *rollout.Sample) { s.FirstStep, s.LastStep = 3, 2 }), col.StepFirst, "identity"},
		{"no group", edit(0, func(s *rollout.Sample) { s.Group = "" }), col.GroupID, "identity"},
		{"id of another row", edit(1, func(s *rollout.Sample) { s.ID = "x" }), "sample_id", "identity"},
		{"unknown status", edit(0, func(s *rollout.Sample) { s.Status = rollout.StatusUnknown }), col.Status, "identity"},
		{"metadata not an object", edit(0, func(s *rollout.Sample) { s.Metadata = json.RawMessage("[1]") }), col.Metadata, "identity"},
		{"text not UTF-8", edit(0, func(s *rollout.Sample) { s.FinishReason = "\xff" }), "finish_reason", "identity"},
		{"another tokenizer", edit(1, func(s *rollout.Sample) { s.Tokenizer = "sha256:cc" }), col.InputIDs, "identity"},
		{"no tokens", edit(0, func(s *rollout.Sample) { s.IDs = nil }), col.InputIDs, "trained"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.parquet")
			w, err := export.Create(path, export.Options{})
			require.NoError(t, err)
			rows := []rollout.Sample{}
			for g := range 2 {
				for r := range 2 {
					rows = append(rows, pair(t, g, r)...)
				}
			}
			for _, s := range c.change(rows) {
				if err = w.Write(s); err != nil {
					break
				}
			}
			if err == nil {
				err = w.Close()
			}
			var refused *export.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.column, refused.Column, err.Error())
			require.Equal(t, c.rule, refused.Rule, err.Error())
			require.ErrorIs(t, err, rollout.KindInput)
			require.Contains(t, err.Error(), fmt.Sprintf("row %q", refused.Sample))
			var located *rollout.Error
			require.ErrorAs(t, err, &located)
			require.NotEmpty(t, located.Fix)
			require.Error(t, w.Close(), "the writer stays refused")
			left, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Empty(t, left, "nothing is left behind")
		})
	}
}

// pair returns one rollout of two rows.
func pair(t testing.TB, g, r int) []rollout.Sample {
	return build(t, newRand(uint64(g*10+r)), spec{group: fmt.Sprintf("g%d", g), id: fmt.Sprintf("g%d/r%d", g, r), index: r,
		status: rollout.StatusCompleted, reward: 1, rows: [][]int{{5, 3}, {6, 2, 3, 4}}})
}

func edit(i int, change func(*rollout.Sample)) func([]rollout.Sample) []rollout.Sample {
	return func(rows []rollout.Sample) []rollout.Sample {
		change(&rows[i])
		return rows
	}
}

func withRollout(s rollout.Sample, id string) rollout.Sample {
	s.Rollout, s.ID = id, ""
	return s
}

func ones(n int) []float32 { return scale(make([]float32, n), 0, 1) }

func scale(v []float32, by float32, plus ...float32) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = x * by
		for _, p := range plus {
			out[i] += p
		}
	}
	return out
}

func maskLast(w []float32) []float32 {
	out := append([]float32{}, w...)
	out[len(out)-1] = 0
	return out
}

func TestUnknownStatusAsDeclared(t *testing.T) {
	rows := pair(t, 0, 0)
	for i := range rows {
		rows[i].Status = rollout.StatusUnknown
	}
	got, _ := readBytes(t, write(t, rows, export.Options{UnknownStatus: rollout.StatusCompleted}))
	require.Equal(t, rollout.StatusCompleted, got[0].Status)
}

func TestAuditFileKeepsTailsAndUntrainedRows(t *testing.T) {
	rows := pair(t, 0, 0)
	rows[0].Weight = make([]float32, rows[0].Len())
	rows[1].Weight = maskLast(rows[1].Weight)
	for i := range rows {
		rows[i].RolloutMaskSum = int64(rows[1].Trained())
	}
	got, _ := readBytes(t, write(t, rows, export.Options{KeepTail: true, KeepUntrained: true}))
	require.Zero(t, got[0].Trained())
}

// Row groups end at the end of a GRPO group, or at four times the limits.
func TestRowGroupCuts(t *testing.T) {
	var rows []rollout.Sample
	for g := range 10 {
		for r := range 2 {
			rows = append(rows, pair(t, g, r)...)
		}
	}
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, export.Options{GroupRows: 6})
	require.NoError(t, err)
	for _, s := range rows {
		require.NoError(t, w.Write(s))
	}
	require.NoError(t, w.Close())
	require.Equal(t, 5, w.Stats().RowGroups, "groups of 4 rows, cut at the first border after 6")
	require.Equal(t, 40, w.Stats().Rows)
	require.Equal(t, 20, w.Stats().Rollouts)
	require.Equal(t, 10, w.Stats().Groups)
}

func TestEmptyFileReads(t *testing.T) {
	got, info := readBytes(t, write(t, nil, export.Options{}))
	require.Empty(t, got)
	require.Zero(t, info.Rows)
}

func TestCreateRefusesAndForces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	_, err := export.Create(path, export.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "exists")

	w, err := export.Create(path, export.Options{Force: true})
	require.NoError(t, err)
	for _, s := range pair(t, 0, 0) {
		require.NoError(t, w.Write(s))
	}
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(old), "the old file stays until the new one is complete")
	require.NoError(t, w.Close())
	rows, _, err := export.ReadAll(path)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.ErrorIs(t, w.Write(rows[0]), export.ErrClosed)

	_, err = export.Create(dir, export.Options{})
	require.ErrorContains(t, err, "folder")
	_, err = export.Create(filepath.Join(dir, "none", "a.parquet"), export.Options{})
	require.ErrorContains(t, err, "make the folder first")
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	w, err := export.Create(filepath.Join(dir, "a.parquet"), export.Options{})
	require.NoError(t, err)
	require.NoError(t, w.Write(pair(t, 0, 0)[0]))
	require.NoError(t, w.Abort())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// If the destination fails at any byte, Write or Close returns an error.
func TestFailingDestination(t *testing.T) {
	rows := pair(t, 0, 0)
	for limit := 0; limit < 3*5000; limit += 37 {
		o := export.Options{Format: []string{"parquet", "arrow", "arrow-stream"}[limit/37%3]}
		size := len(write(t, rows, o))
		if limit >= size {
			continue
		}
		w, err := export.NewWriter(&shortWriter{left: limit}, o)
		for _, s := range rows {
			if err == nil {
				err = w.Write(s)
			}
		}
		if err == nil {
			err = w.Close()
		}
		require.ErrorIs(t, err, errFull, "limit %d of %d", limit, size)
	}
}

var errFull = errors.New("full")

type shortWriter struct{ left int }

func (w *shortWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		n := w.left
		w.left = 0
		return n, errFull
	}
	w.left -= len(b)
	return len(b), nil
}

func TestPrefixesFail(t *testing.T) {
	for _, f := range []string{"parquet", "arrow", "arrow-stream"} {
		data := write(t, pair(t, 0, 0), export.Options{Format: f})
		for n := range data {
			r, err := export.NewReader(bytes.NewReader(data[:n]), int64(n))
			for err == nil {
				_, err = r.Read()
			}
			require.NotErrorIs(t, err, io.EOF, "format %d, prefix of %d bytes", f, n)
			require.ErrorIs(t, err, rollout.KindFormat)
		}
	}
}

func TestOptionsFaultsAllReported(t *testing.T) {
	o := export.Options{ZstdLevel: 99, GroupRows: -1, Metadata: map[string]string{"turnpack.x": ""}}
	err := o.Validate()
	for _, want := range []string{"ZstdLevel", "GroupRows", "reserved"} {
		require.ErrorContains(t, err, want)
	}
}

// Files that pyarrow wrote with the same schema can be read, and their finished rows can be
// written.
func TestReadsExamplesWrittenByOthers(t *testing.T) {
	for _, name := range []string{"ragged.parquet", "linear.parquet"} {
		rows, info, err := export.ReadAll(filepath.Join(kit.Dir(t, "trainers", "examples"), name))
		require.NoError(t, err)
		require.NotEmpty(t, rows)
		require.Contains(t, info.Estimator, "grpo")
		var out []rollout.Sample
		for i := 0; i < len(rows); {
			j := i
			for j < len(rows) && rows[j].Rollout == rows[i].Rollout {
				j++
			}
			out = append(out, rollout.FinishRows(rows[i:j])...)
			i = j
		}
		got, _ := readBytes(t, write(t, out, export.Options{}))
		require.Equal(t, len(out), len(got))
	}
}

func FuzzReader(f *testing.F) {
	f.Add(write(f, pair(f, 0, 0), export.Options{ZstdLevel: -1}))
	f.Add(write(f, nil, export.Options{}))
	for _, format := range []string{"arrow", "arrow-stream"} {
		f.Add(write(f, pair(f, 0, 0), export.Options{ZstdLevel: -1, Format: format}))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		r, err := export.NewReader(bytes.NewReader(data), int64(len(data)))
		for err == nil {
			_, err = r.Read()
		}
	})
}
