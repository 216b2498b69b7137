package export_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// traced returns s as it is read back from a file with a trace.
func traced(s rollout.Sample) rollout.Sample {
	out := asRead(s)
	out.Source, out.Flags = s.Source, s.Flags
	return out
}

func TestTraceRoundTrip(t *testing.T) {
	for seed := range uint64(5) {
		rows := fixture(t, seed, 8)
		for _, f := range []string{"parquet", "arrow", "arrow-stream"} {
			got, info := readBytes(t, write(t, rows, export.Options{Trace: true, Format: f, GroupRows: 5}))
			require.True(t, info.Trace)
			require.Len(t, got, len(rows))
			for i := range rows {
				require.Equal(t, traced(rows[i]), got[i], "seed %d format %d row %d", seed, f, i)
			}
		}
		_, info := readBytes(t, write(t, rows, export.Options{}))
		require.False(t, info.Trace)
	}
}

// The trace adds two columns at the end; without it the file is unchanged.
func TestTraceAddsColumnsOnly(t *testing.T) {
	rows := fixture(t, 1, 4)
	plain, with := write(t, rows, export.Options{}), write(t, rows, export.Options{Trace: true})
	require.NotContains(t, string(plain), col.Sources)
	a, _ := readBytes(t, plain)
	b, _ := readBytes(t, with)
	for i := range a {
		b[i].Source, b[i].Flags = a[i].Source, a[i].Flags
	}
	require.Equal(t, a, b)
}

// In a row with a trace, steps are exact even if the mask has holes.
func TestTraceTellsSteps(t *testing.T) {
	var s rollout.Sample
	s.Group, s.Rollout, s.Status, s.LastStep = "g", "r", rollout.StatusCompleted, 1
	for _, tok := range []struct {
		source int32
		flags  rollout.Flag
		weight float32
		step   int32
	}{{0, 0, 0, -1}, {1, rollout.FlagSampled, 1, 0}, {1, rollout.FlagSampled, 0, 0}, {1, rollout.FlagSampled, 1, 0}, {2, 0, 0, -1}, {3, rollout.FlagSampled, 0, 1}, {3, rollout.FlagSampled, 1, 1}} {
		s.IDs, s.Source, s.Flags = append(s.IDs, 7), append(s.Source, tok.source), append(s.Flags, tok.flags)
		s.Weight, s.Turn = append(s.Weight, tok.weight), append(s.Turn, tok.step)
	}
	rows := rollout.FinishRows([]rollout.Sample{s})
	got, _ := readBytes(t, write(t, rows, export.Options{Trace: true}))
	require.Equal(t, s.Turn, got[0].Turn)
	got, _ = readBytes(t, write(t, rows, export.Options{}))
	require.NotEqual(t, s.Turn, got[0].Turn, "without a trace three runs cannot be told from three steps")
}

func TestTraceRefuses(t *testing.T) {
	for _, c := range []struct {
		reason string
		spoil  func(s *rollout.Sample)
		column string
		rule   string
	}{
		{"a row that does not know its sources", func(s *rollout.Sample) { s.Source = nil }, col.Sources, "columns"},
		{"a row that does not know its flags", func(s *rollout.Sample) { s.Flags = nil }, col.Sources, "columns"},
		{"a source below -1", func(s *rollout.Sample) { s.Source = append([]int32{-2}, s.Source[1:]...) }, col.Sources, "identity"},
		{"a flag that is not known", func(s *rollout.Sample) { s.Flags = append([]rollout.Flag{128}, s.Flags[1:]...) }, col.Flags, "identity"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := fixture(t, 2, 1)[0]
			c.spoil(&s)
			w, err := export.NewWriter(&strings.Builder{}, export.Options{Trace: true})
			require.NoError(t, err)
			var refused *export.RefusedError
			require.ErrorAs(t, w.Write(s), &refused)
			require.Equal(t, c.column, refused.Column)
			require.Equal(t, c.rule, refused.Rule)
		})
	}
}
