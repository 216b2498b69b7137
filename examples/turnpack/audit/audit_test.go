package audit_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	command "github.com/turnpack/turnpack/examples/turnpack/audit"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/rollout"
)

// run runs a command line and returns its exit code.
func run(t *testing.T, out, errs *bytes.Buffer, args ...string) int {
	line := struct {
		Audit command.Cmd  `cmd:""`
		Diff  command.Diff `cmd:""`
	}{}
	return cli.Main(&line, &cli.Program{Ctx: t.Context(), Out: out, Err: errs}, args)
}

func file(t *testing.T, ids ...[]int32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.parquet")
	w, err := export.Create(path, export.Options{})
	require.NoError(t, err)
	for i, of := range ids {
		s := rollout.Sample{Status: rollout.StatusCompleted, RolloutIndex: i, Reward: float64(i)}
		s.Group, s.Rollout, s.IDs = "g", string(rune('a'+i)), of
		s.Weight = make([]float32, len(of))
		s.Weight[len(of)-1] = 1
		require.NoError(t, w.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
	}
	require.NoError(t, w.Close())
	return path
}

func TestAudit(t *testing.T) {
	var out, errs bytes.Buffer
	good := file(t, []int32{1, 2, 3}, []int32{1, 2, 4})
	require.Equal(t, 0, run(t, &out, &errs, "audit", good), errs.String())
	require.Contains(t, out.String(), "no findings")

	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	require.NoError(t, os.WriteFile(bad, []byte(`{"input_ids":[1,2],"loss_mask":[1,1]}`), 0o600))
	out.Reset()
	require.Equal(t, 1, run(t, &out, &errs, "audit", "--json", bad))
	var r map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Equal(t, "first-token-trained", r["findings"].([]any)[0].(map[string]any)["rule"])

	require.Equal(t, 2, run(t, &out, &errs, "audit", "none.parquet"))
	require.Contains(t, errs.String(), "none.parquet")
	require.Equal(t, 2, run(t, &out, &errs, "audit"))
	require.Equal(t, 2, run(t, &out, &errs, "audit", "--fail-on", "x", good))
	for _, n := range []string{"0", "-1"} {
		require.Equal(t, 2, run(t, &out, &errs, "audit", "--examples", n, good))
		require.Contains(t, errs.String(), "--examples: expected 1 or more, found "+n)
	}
	require.Equal(t, 2, run(t, &out, &errs, "audit", "--model", filepath.Join(t.TempDir(), "no folder"), good))
	require.Contains(t, errs.String(), "no folder")
	beyond := file(t, []int32{1, 2, 1 << 30})
	require.Equal(t, 0, run(t, &out, &errs, "audit", beyond), errs.String())
	require.Equal(t, 1, run(t, &out, &errs, "audit", "--model", "../../tutorial/model", beyond))
}

func TestDiff(t *testing.T) {
	a, b := file(t, []int32{1, 2, 3, 4, 5, 6, 7, 8}, []int32{9, 9}), file(t, []int32{1, 2, 3, 4, 5, 0, 7, 8}, []int32{9, 9}, []int32{3, 3})
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(t, &out, &errs, "diff", "--context", "2", a, b))
	require.Equal(t, "a#0:\n  input_ids differ from token 5 on\n    4 5 [6] 7 8\n    4 5 [0] 7 8\nc#0: only in "+b+"\n1 rows equal, 1 differ, 0 only in "+a+", 1 only in "+b+"\n", out.String())
	require.Equal(t, 0, run(t, &out, &errs, "diff", a, a))
	require.Equal(t, 2, run(t, &out, &errs, "diff", a, "none"))
	require.Equal(t, 2, run(t, &out, &errs, "diff", a))
	broken, write := io.Pipe()
	require.NoError(t, broken.Close())
	c := command.Diff{A: a, B: a}
	require.ErrorIs(t, c.Run(&cli.Program{Ctx: t.Context(), Out: write, Err: &errs}), io.ErrClosedPipe, "nobody learns that they are equal")
	out.Reset()
	require.Equal(t, 0, run(t, &out, &errs, "diff", "--help"))
	require.Contains(t, out.String(), "A file, or a folder with one.")
}

// Rows that repeat an id are compared in order, and those left over are counted.
func TestDiffOfRepeatedIDs(t *testing.T) {
	write := func(ids string, last ...int32) string {
		path := filepath.Join(t.TempDir(), "a.arrow")
		w, err := export.Create(path, export.Options{Format: "arrow", ZstdLevel: -1})
		require.NoError(t, err)
		var written string
		for i, of := range last {
			s := rollout.Sample{Status: rollout.StatusCompleted, RolloutIndex: i}
			s.Group, s.Rollout, s.IDs, s.Weight = "g", string(rune('k'+i)), []int32{1, of}, []float32{0, 1}
			require.NoError(t, w.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
			written += s.Rollout + "#0"
		}
		require.NoError(t, w.Close())
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(file, []byte(written)))
		wanted := strings.Join(strings.Split(ids, ""), "#0") + "#0" // the writer refuses repeated ones
		require.NoError(t, os.WriteFile(path, bytes.Replace(file, []byte(written), []byte(wanted), 1), 0o600))
		return path
	}
	rows := func(last ...int32) string { return write(strings.Repeat("a", len(last)), last...) }
	for _, c := range []struct {
		a, b []int32
		code int
		want string
	}{
		{[]int32{1, 2, 3}, []int32{1, 2, 3}, 0, "3 rows equal, 0 differ, 0 only in A, 0 only in B"},
		{[]int32{1, 2}, []int32{2, 1}, 1, "0 rows equal, 2 differ, 0 only in A, 0 only in B"},
		{[]int32{1, 2, 3}, []int32{1}, 1, "1 rows equal, 0 differ, 2 only in A, 0 only in B"},
		{[]int32{2}, []int32{1, 2, 2}, 1, "0 rows equal, 1 differ, 0 only in A, 2 only in B"},
	} {
		var out, errs bytes.Buffer
		a, b := rows(c.a...), rows(c.b...)
		require.Equal(t, c.code, run(t, &out, &errs, "diff", a, b), errs.String())
		said := strings.NewReplacer(a, "A", b, "B").Replace(out.String())
		require.Contains(t, said, c.want)
		require.Equal(t, max(0, len(c.a)-len(c.b)), strings.Count(said, "a#0: only in A"))
		require.Equal(t, max(0, len(c.b)-len(c.a)), strings.Count(said, "a#0: only in B"))
	}
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(t, &out, &errs, "diff", rows(1, 2), write("xyaa", 1, 1, 1, 2)), errs.String())
	require.Contains(t, out.String(), "0 rows equal, 2 differ, 0 only in", "both rows wait before the first is met")
	require.Contains(t, out.String(), "rollout_index: 0, 2")
	require.Contains(t, out.String(), "rollout_index: 1, 3")
	require.NotContains(t, out.String(), "input_ids", "the first is compared with the first")
}

// Files of an incomplete set are compared, and each is named once.
func TestDiffOfUnfinishedSet(t *testing.T) {
	dir := t.TempDir()
	set, err := shard.Create(dir, shard.Options{GroupsPerShard: 1})
	require.NoError(t, err)
	for _, g := range []string{"a", "b"} {
		s := rollout.Sample{Status: rollout.StatusCompleted}
		s.Group, s.Rollout, s.IDs, s.Weight = g, g, []int32{1, 2}, []float32{0, 1}
		require.NoError(t, set.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
	}
	a := filepath.Join(dir, "data", "part-00000.parquet")
	var out, errs bytes.Buffer
	require.Equal(t, 0, run(t, &out, &errs, "diff", a, a))
	require.Equal(t, 1, strings.Count(errs.String(), export.ErrUnfinished.Error()), errs.String())
	errs.Reset()
	require.NoError(t, set.Close())
	require.Equal(t, 0, run(t, &out, &errs, "diff", a, a))
	require.Empty(t, errs.String())
}

// Sources of tokens are compared if both files record them.
func TestDiffOfTraces(t *testing.T) {
	traced := func(source int32, flag rollout.Flag) string {
		path := filepath.Join(t.TempDir(), "a.parquet")
		w, err := export.Create(path, export.Options{Trace: true})
		require.NoError(t, err)
		s := rollout.Sample{Status: rollout.StatusCompleted}
		s.Group, s.Rollout, s.IDs, s.Weight = "g", "a", []int32{1, 2}, []float32{0, 1}
		s.Source, s.Flags = []int32{0, source}, []rollout.Flag{0, rollout.FlagSampled | flag}
		require.NoError(t, w.Write(rollout.FinishRows([]rollout.Sample{s})[0]))
		require.NoError(t, w.Close())
		return path
	}
	a := traced(1, 0)
	for b, want := range map[string]string{
		traced(1, 0):                   "1 rows equal",
		traced(2, 0):                   "sources differ from token 1 on: 1, 2",
		traced(1, rollout.FlagContent): "flags differ from token 1 on: 1, 3",
		file(t, []int32{1, 2}):         "sources and flags: null in one of them",
	} {
		var out, errs bytes.Buffer
		run(t, &out, &errs, "diff", a, b)
		require.Contains(t, out.String(), want, errs.String())
	}
}
