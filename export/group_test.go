package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
)

// small makes the rows of one group: two rollouts of two rows.
func small(group string) (rows []rollout.Sample) {
	for i := range 2 {
		var of []rollout.Sample
		for k := range 2 {
			s := rollout.Sample{Status: rollout.StatusCompleted, RolloutIndex: i, Reward: float64(i)}
			s.Group, s.Rollout = group, fmt.Sprint(group, "/", i)
			s.IDs, s.Weight = []int32{1, int32(i), int32(k), 9}, []float32{0, 0, 1, 1}
			of = append(of, s)
		}
		rows = append(rows, rollout.FinishRows(of)...)
	}
	return rows
}

func groupsOf(rows []rollout.Sample) (out []string) {
	for _, s := range rows {
		if len(out) == 0 || out[len(out)-1] != s.Group {
			out = append(out, s.Group)
		}
	}
	return out
}

// Whatever is wrong with a group, it alone is refused, the error names the rollout at
// fault, and the groups after it are written as if it had never come.
func TestGroupIsRefusedAlone(t *testing.T) {
	faults := map[string]struct {
		spoil func(rows []rollout.Sample) []rollout.Sample
		blame string
	}{
		"first row":       {func(r []rollout.Sample) []rollout.Sample { r[0].Weight = nil; return r }, "bad/0"},
		"last row":        {func(r []rollout.Sample) []rollout.Sample { r[3].IDs = []int32{1, 2, 3, -4}; return r }, "bad/1"},
		"not ended":       {func(r []rollout.Sample) []rollout.Sample { return r[:3] }, "bad/1"},
		"first not ended": {func(r []rollout.Sample) []rollout.Sample { return append(r[:1:1], r[2:]...) }, "bad/0"},
		"mask sum":        {func(r []rollout.Sample) []rollout.Sample { r[1].RolloutMaskSum++; return r }, "bad/0"},
		"twice an index":  {func(r []rollout.Sample) []rollout.Sample { r[2].RolloutIndex, r[3].RolloutIndex = 0, 0; return r }, "bad/1"},
		"old rollout": {func(r []rollout.Sample) []rollout.Sample {
			r[2].Rollout, r[3].Rollout = "a/1", "a/1"
			r[2].ID, r[3].ID = "", ""
			return r
		}, "a/1"},
		"other columns": {func(r []rollout.Sample) []rollout.Sample { r[2].Logprob = make([]float32, 4); return r }, "bad/1"},
		"two groups":    {func(r []rollout.Sample) []rollout.Sample { return append(r, small("other")...) }, "other/0"},
	}
	for name, f := range faults {
		for first := range 2 {
			var buf bytes.Buffer
			w, err := export.NewWriter(&buf, export.Options{})
			require.NoError(t, err)
			var want []string
			if first == 0 {
				require.NoError(t, w.WriteGroup(small("a")))
				want = append(want, "a")
			} else if name == "old rollout" || name == "other columns" {
				continue // faults against rows before
			}
			err = w.WriteGroup(f.spoil(small("bad")))
			_, refused := errors.AsType[*export.RefusedError](err)
			require.True(t, refused, "%s: %v", name, err)
			located, _ := errors.AsType[*rollout.Error](err)
			require.Equal(t, f.blame, located.Where.Rollout, name)
			require.NoError(t, w.WriteGroup(small("bad")), "%s: mended it is taken", name)
			require.NoError(t, w.WriteGroup(small("c")), name)
			require.Error(t, w.WriteGroup(small("c")), "twice")
			require.NoError(t, w.Close(), name)
			rows, _ := readBytes(t, buf.Bytes())
			require.Equal(t, append(want, "bad", "c"), groupsOf(rows), name)
			require.Equal(t, export.Stats{Rows: 4 * len(rows) / 4, Rollouts: len(rows) / 2, Groups: len(rows) / 4, Tokens: int64(4 * len(rows)), Trained: int64(2 * len(rows)),
				RowGroups: 1, Bytes: int64(buf.Len())}, w.Stats())
		}
	}
}

func TestGroupsAreAsRows(t *testing.T) {
	all := append(small("a"), small("b")...)
	var buf bytes.Buffer
	w, err := export.NewWriter(&buf, export.Options{})
	require.NoError(t, err)
	require.NoError(t, w.WriteGroup(all[:4]))
	require.NoError(t, w.WriteGroup(all[4:]))
	require.NoError(t, w.WriteGroup(nil))
	require.NoError(t, w.Close())
	require.Equal(t, write(t, all, export.Options{}), buf.Bytes())
}

// After a refusal the rows that come later are named, and not only the one at fault.
func TestLaterRowsNameThemselves(t *testing.T) {
	w, err := export.NewWriter(&bytes.Buffer{}, export.Options{})
	require.NoError(t, err)
	bad := small("a")[0]
	bad.Weight = nil
	require.Error(t, w.Write(bad))
	err = w.Write(small("b")[0])
	located, _ := errors.AsType[*rollout.Error](err)
	require.Equal(t, "b/0", located.Where.Rollout)
	require.ErrorContains(t, err, "a/0")
	_, refused := errors.AsType[*export.RefusedError](err)
	require.True(t, refused)
	require.ErrorContains(t, w.WriteGroup(small("c")), "c/0")
	require.Error(t, w.Close())
}

// Close after Abort publishes nothing and says so, however the calls come.
func TestCloseAfterAbort(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []export.Format{export.FormatParquet, export.FormatArrowFile, export.FormatArrowStream} {
		w, err := export.Create(filepath.Join(dir, "a"), export.Options{Format: format})
		require.NoError(t, err)
		require.NoError(t, w.WriteGroup(small("a")))
		require.NoError(t, w.Abort())
		require.NoError(t, w.Abort())
		require.ErrorIs(t, w.Close(), export.ErrAborted)
		require.ErrorIs(t, w.Write(small("b")[0]), export.ErrClosed)
		require.ErrorIs(t, w.WriteGroup(small("b")), export.ErrAborted)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	w, err := export.Create(filepath.Join(dir, "a"), export.Options{})
	require.NoError(t, err)
	require.NoError(t, w.WriteGroup(small("a")))
	require.NoError(t, w.Close())
	require.NoError(t, w.Abort(), "what is published stays")
	require.FileExists(t, filepath.Join(dir, "a"))
	_, err = export.Create(filepath.Join(dir, "a"), export.Options{})
	require.ErrorIs(t, err, export.ErrExists)
}

// A flushed file can be read at once, by the name that a killed writer leaves, and
// ends as any other.
func TestFlush(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	w, err := export.Create(path, export.Options{})
	require.NoError(t, err)
	var want []string
	for i := range 5 {
		group := fmt.Sprint("g", i)
		want = append(want, group)
		require.NoError(t, w.WriteGroup(small(group)))
		require.NoError(t, w.Flush())
		rows, _, err := export.ReadAll(path + export.FlushedSuffix)
		require.NoError(t, err)
		require.Equal(t, want, groupsOf(rows))
		require.NoFileExists(t, path)
	}
	_, err = export.Create(path, export.Options{})
	require.ErrorIs(t, err, export.ErrExists, "what was flushed is not lost in silence")
	for _, s := range small("last")[:3] {
		require.NoError(t, w.Write(s))
	}
	require.Error(t, w.Flush(), "in the middle of a rollout")
	require.NoError(t, w.Write(small("last")[3]))
	require.NoError(t, w.Close())
	rows, _, err := export.ReadAll(path)
	require.NoError(t, err)
	require.Equal(t, append(want, "last"), groupsOf(rows))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	w, err = export.Create(filepath.Join(dir, "b"), export.Options{})
	require.NoError(t, err)
	require.NoError(t, w.WriteGroup(small("a")))
	require.NoError(t, w.Flush())
	require.NoError(t, w.Abort())
	require.NoFileExists(t, filepath.Join(dir, "b")+export.FlushedSuffix)
	w, err = export.NewWriter(&bytes.Buffer{}, export.Options{Format: export.FormatArrowStream})
	require.NoError(t, err)
	require.ErrorIs(t, w.Flush(), rollout.KindInput)
	require.NoError(t, w.WriteGroup(small("a")), "the writer goes on")
}

// A writer that is killed leaves every group that it flushed.
func TestKilledAfterFlush(t *testing.T) {
	const env = "TURNPACK_TEST_FLUSHED"
	if path := os.Getenv(env); path != "" {
		w, err := export.Create(path, export.Options{GroupRows: 1, GroupTokens: 1})
		require.NoError(t, err)
		for i := 0; ; i++ {
			require.NoError(t, w.WriteGroup(small(fmt.Sprint("g", i))))
			if i%3 == 2 {
				require.NoError(t, w.Flush())
				fmt.Println("flushed", i)
			}
		}
	}
	for round := range 8 {
		path := filepath.Join(t.TempDir(), "a.parquet")
		var out strings.Builder
		run := exec.Command(os.Args[0], "-test.run=^TestKilledAfterFlush$")
		run.Env, run.Stdout = append(os.Environ(), env+"="+path), &out
		require.NoError(t, run.Start())
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(path + export.FlushedSuffix); err == nil {
				break
			}
		}
		time.Sleep(time.Duration(round) * 3 * time.Millisecond)
		require.NoError(t, run.Process.Kill())
		_ = run.Wait()
		rows, _, err := export.ReadAll(path + export.FlushedSuffix)
		require.NoError(t, err)
		said := strings.Count(out.String(), "flushed")
		require.GreaterOrEqual(t, len(groupsOf(rows)), 3*said)
		require.Zero(t, len(rows)%12, "up to a flush")
	}
}
