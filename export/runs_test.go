package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// inRuns returns a row of four runs, run-length encoded.
func inRuns(id string, logprobs bool) (s rollout.Sample, lens []int32, ids []rollout.TokenID, lp []float32) {
	lens = []int32{1, 700, 200, 99}
	for i := range int32(1000) {
		ids = append(ids, i*7%977)
		lp = append(lp, -float32(i)/1000)
	}
	advantage := 0.5
	s = rollout.Sample{Advantage: &advantage, PromptLen: 701, RolloutMaskSum: 299, IsLast: true, Status: rollout.StatusCompleted, Temperature: 1}
	s.Rollout, s.Group = id, "group of "+id
	s.IDs, s.Source, s.Turn = []int32{0, 7, 0, 0}, []int32{-1, 0, 1, 1}, []int32{-1, -1, 0, 0}
	s.Flags = []rollout.Flag{0, rollout.FlagContent, rollout.FlagSampled | rollout.FlagReasoning, rollout.FlagSampled | rollout.FlagContent}
	s.Weight, s.Credit = []float32{0, 0, 1, 1}, []float32{0, 0, 0.5, -0.25}
	if !logprobs {
		return s, lens, ids, nil
	}
	s.Logprob = make([]float32, 4)
	return s, lens, ids, lp
}

// A run-length encoded row is written like a plain one, among other rows and in every format.
func TestWriteRuns(t *testing.T) {
	for _, format := range []string{"parquet", "arrow"} {
		for _, logprobs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/%v", format, logprobs), func(t *testing.T) {
				var got, want bytes.Buffer
				runs, err := export.NewWriter(&got, export.Options{Format: format, Trace: true})
				require.NoError(t, err)
				rows, err := export.NewWriter(&want, export.Options{Format: format, Trace: true})
				require.NoError(t, err)
				for i := range 5 {
					s, lens, ids, lp := inRuns(fmt.Sprint("r", i), logprobs)
					whole := spool.Whole(s, lens, ids, append([]float32(nil), lp...))
					if !logprobs {
						whole.Logprob = nil
					}
					require.NoError(t, rows.Write(whole))
					if i%2 == 0 {
						require.NoError(t, runs.Write(whole))
					} else {
						require.NoError(t, runs.WriteRuns(s, lens, ids, lp))
					}
				}
				require.NoError(t, runs.Close())
				require.NoError(t, rows.Close())
				require.Equal(t, rows.Stats().Tokens, runs.Stats().Tokens)
				require.Equal(t, rows.Stats().Trained, runs.Stats().Trained)
				require.Equal(t, readAll(t, want.Bytes()), readAll(t, got.Bytes()))
			})
		}
	}
}

func readAll(t *testing.T, file []byte) (rows []rollout.Sample) {
	t.Helper()
	r, err := export.NewReader(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	for {
		s, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows
		}
		require.NoError(t, err)
		rows = append(rows, s)
	}
}

// A row that breaks a rule is refused with the same error as by Write.
func TestWriteRunsRefuses(t *testing.T) {
	for name, spoil := range map[string]func(s *rollout.Sample, lens []int32, ids []rollout.TokenID, lp []float32){
		"no group":               func(s *rollout.Sample, _ []int32, _ []rollout.TokenID, _ []float32) { s.Group = "" },
		"negative id":            func(_ *rollout.Sample, _ []int32, ids []rollout.TokenID, _ []float32) { ids[500] = -1 },
		"prompt too long":        func(s *rollout.Sample, _ []int32, _ []rollout.TokenID, _ []float32) { s.PromptLen = 702 },
		"log probability over 0": func(_ *rollout.Sample, _ []int32, _ []rollout.TokenID, lp []float32) { lp[900] = 1 },
		"first token trained":    func(s *rollout.Sample, _ []int32, _ []rollout.TokenID, _ []float32) { s.Weight[0] = 1 },
		"sum of the mask":        func(s *rollout.Sample, _ []int32, _ []rollout.TokenID, _ []float32) { s.RolloutMaskSum = 2 },
		"tail":                   func(s *rollout.Sample, _ []int32, _ []rollout.TokenID, _ []float32) { s.Weight[3] = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, lens, ids, lp := inRuns("r", true)
			spoil(&s, lens, ids, lp)
			write := func(write func(*export.Writer) error) string {
				w, err := export.NewWriter(&bytes.Buffer{}, export.Options{})
				require.NoError(t, err)
				if err = write(w); err == nil {
					err = w.Close()
				}
				require.ErrorIs(t, err, rollout.KindInput)
				return err.Error()
			}
			whole := spool.Whole(s, lens, ids, lp)
			require.Equal(t, write(func(w *export.Writer) error { return w.Write(whole) }), write(func(w *export.Writer) error { return w.WriteRuns(s, lens, ids, lp) }))
		})
	}
	s, lens, ids, _ := inRuns("r", false)
	w, err := export.NewWriter(&bytes.Buffer{}, export.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, w.WriteRuns(s, lens[:3], ids, nil), rollout.KindInput)
}
