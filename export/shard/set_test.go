package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/shard"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// rows returns a fixed input: groups of 1 to 4 rollouts of 1 to 3 rows.
func rows(groups int) []rollout.Sample {
	r := rand.New(rand.NewPCG(11, 12))
	var out []rollout.Sample
	for g := range groups {
		for i := range 1 + r.IntN(4) {
			var of []rollout.Sample
			for k := range 1 + r.IntN(3) {
				n, m := 1+r.IntN(60), 1+r.IntN(30)
				s := rollout.Sample{RolloutIndex: i, Reward: float64((g + i) % 3), Status: rollout.StatusCompleted, Temperature: 1}
				s.Identity = rollout.Identity{Group: fmt.Sprintf("g%d", g), Rollout: fmt.Sprintf("g%d/%d", g, i), FirstStep: k, LastStep: k, Tokenizer: "sha256:t"}
				for t := range n + m {
					s.IDs = append(s.IDs, int32(r.IntN(1000)))
					w := float32(0)
					if t >= n {
						w = 1
					}
					s.Weight = append(s.Weight, w)
				}
				of = append(of, s)
			}
			out = append(out, rollout.FinishRows(of)...)
		}
	}
	return out
}

// ran is a set that was written, with the number of shards that existed before.
type ran struct {
	*shard.Set
	resumed int
}

func run(dir string, in []rollout.Sample, o shard.Options) (*ran, error) {
	set, err := shard.Create(dir, o)
	if err != nil {
		return nil, err
	}
	s := &ran{set, len(set.Shards())}
	for _, row := range in {
		if err := s.Write(row); err != nil {
			return s, fmt.Errorf("%w (close: %v)", err, s.Close())
		}
	}
	return s, s.Close()
}

// The manifest says that a file trains tokens of unknown policy versions.
func TestVersions(t *testing.T) {
	in := rows(3)
	written := func() []shard.Shard {
		dir := t.TempDir()
		_, err := run(dir, in, shard.Options{GroupsPerShard: 2})
		require.NoError(t, err)
		m, err := shard.Read(dir)
		require.NoError(t, err)
		return m.Shards
	}
	require.Nil(t, written()[0].Versions)
	for i := range in {
		in[i].Version = make([]int32, len(in[i].IDs))
		for k, w := range in[i].Weight {
			in[i].Version[k] = -1
			if w > 0 {
				in[i].Version[k] = int32(5 + i)
			}
		}
	}
	shards := written()
	require.Len(t, shards, 2)
	first := shards[0].Rows
	require.Equal(t, &shard.Range{Min: 5, Max: float64(4 + first)}, shards[0].Versions)
	require.Equal(t, &shard.Range{Min: float64(5 + first), Max: float64(4 + len(in))}, shards[1].Versions)
}

func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(data)
		return err
	}))
	return out
}

var small = shard.Options{RowsPerShard: 12}

func TestShards(t *testing.T) {
	in := rows(30)
	dir := t.TempDir()
	s, err := run(dir, in, small)
	require.NoError(t, err)
	m := s.Manifest()
	read, err := shard.Read(dir)
	require.NoError(t, err)
	require.Equal(t, m, *read)
	require.NoError(t, shard.Verify(dir))
	require.Greater(t, len(m.Shards), 4)
	require.Equal(t, len(in), m.Rows)
	require.Equal(t, 30, m.Groups)
	require.Equal(t, "sha256:t", m.Tokenizer)
	var got []rollout.Sample
	group := ""
	for _, sh := range m.Shards {
		part, _, err := export.ReadAll(filepath.Join(dir, sh.File))
		require.NoError(t, err)
		require.Equal(t, sh.Rows, len(part))
		require.NotEqual(t, group, part[0].Group, "a group lies in one shard")
		require.Equal(t, sh.First, part[0].ID)
		require.Equal(t, sh.Last, part[len(part)-1].ID)
		group = part[len(part)-1].Group
		got = append(got, part...)
	}
	require.Equal(t, len(in), len(got))
	for i := range in {
		require.Equal(t, in[i].IDs, got[i].IDs)
		require.Equal(t, in[i].ID, got[i].ID)
	}
	require.Len(t, contents(t, dir), len(m.Shards)+1, "shards and manifest, nothing else")
}

func TestOneFileAStep(t *testing.T) {
	dir := t.TempDir()
	s, err := run(dir, rows(10), shard.Options{GroupsPerShard: 4, Name: func(i int) string { return fmt.Sprintf("step_%d.parquet", i) }})
	require.NoError(t, err)
	var groups []int
	for _, sh := range s.Manifest().Shards {
		groups = append(groups, sh.Groups)
	}
	require.Equal(t, []int{4, 4, 2}, groups)
	require.FileExists(t, filepath.Join(dir, "step_2.parquet"))
}

func TestBytesPerShard(t *testing.T) {
	dir := t.TempDir()
	o := shard.Options{BytesPerShard: 4000}
	o.Export.GroupRows = 4
	s, err := run(dir, rows(40), o)
	require.NoError(t, err)
	require.Greater(t, len(s.Manifest().Shards), 3)
}

func TestStates(t *testing.T) {
	in := rows(12)
	dir := t.TempDir()
	s, err := shard.Create(dir, small)
	require.NoError(t, err)
	_, err = shard.Create(dir, small)
	require.ErrorContains(t, err, "another writer")
	_, err = shard.Create(dir, shard.Options{RowsPerShard: 12, Force: true})
	require.ErrorContains(t, err, "another writer", "not even by force")
	for _, row := range in[:len(in)/2] {
		require.NoError(t, s.Write(row))
	}
	_, err = shard.Read(dir)
	require.ErrorContains(t, err, "not complete")
	require.NoError(t, s.Abort())
	require.NoError(t, s.Abort())

	_, err = run(dir, in, shard.Options{RowsPerShard: 13})
	require.ErrorContains(t, err, "other options")

	changed := append([]rollout.Sample{}, in...)
	changed[3].FinishReason = "stop"
	_, err = run(dir, changed, small)
	require.ErrorContains(t, err, "rows differ")
	_, err = run(dir, in[:2], small)
	require.ErrorContains(t, err, "rows differ", "the input ends early")

	again, err := run(dir, in, small)
	require.NoError(t, err)
	require.Positive(t, again.resumed)
	require.NoError(t, shard.Verify(dir))

	_, err = run(dir, in, small)
	require.ErrorContains(t, err, "complete")
	want := contents(t, dir)
	_, err = run(dir, in, shard.Options{RowsPerShard: 12, Force: true})
	require.NoError(t, err)
	require.Equal(t, want, contents(t, dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "part-00000.parquet"), []byte("x"), 0o600))
	require.ErrorContains(t, shard.Verify(dir), "part-00000")
	require.NoError(t, os.Remove(filepath.Join(dir, shard.ManifestName)))
	_, err = run(dir, in, small)
	require.ErrorContains(t, err, "belongs to no run")
}

// The trace of a row is part of the input, which must be the same in a later run.
func TestTracedRowsAreCompared(t *testing.T) {
	in := rows(12)
	for i := range in {
		in[i].Source, in[i].Flags = make([]int32, in[i].Len()), make([]rollout.Flag, in[i].Len())
		for k, w := range in[i].Weight {
			if w > 0 {
				in[i].Flags[k] = rollout.FlagSampled
			}
		}
	}
	traced := small
	traced.Export.Trace = true
	dir := t.TempDir()
	s, err := shard.Create(dir, traced)
	require.NoError(t, err)
	for _, row := range in[:len(in)/2] {
		require.NoError(t, s.Write(row))
	}
	require.NoError(t, s.Abort())
	in[3].Source[0] = -1
	_, err = run(dir, in, traced)
	require.ErrorContains(t, err, "rows differ")
	in[3].Source[0] = 0
	again, err := run(dir, in, traced)
	require.NoError(t, err)
	require.Positive(t, again.resumed)
}

func TestRefusedRowsKeepWhatIsDone(t *testing.T) {
	in := rows(12)
	dir := t.TempDir()
	back := append(append([]rollout.Sample{}, in...), in[0])
	_, err := run(dir, back, small)
	var refused *export.RefusedError
	require.ErrorAs(t, err, &refused, "a group of an earlier shard comes back")
	require.Equal(t, "order", refused.Rule)
	adv := 1.0
	more := append([]rollout.Sample{}, in...)
	more[len(more)-1].Advantage = &adv
	_, err = run(dir, more, small)
	require.ErrorAs(t, err, &refused, "a column in the last shard only")
	require.Equal(t, col.Advantage, refused.Column)
	s, err := run(dir, in, small)
	require.NoError(t, err)
	require.Positive(t, s.resumed)
}

func TestDamagedShardIsWrittenAgain(t *testing.T) {
	in := rows(20)
	want, dir := t.TempDir(), t.TempDir()
	_, err := run(want, in, small)
	require.NoError(t, err)
	s, err := shard.Create(dir, small)
	require.NoError(t, err)
	for _, row := range in {
		require.NoError(t, s.Write(row))
	}
	require.NoError(t, s.Abort())
	require.NoError(t, os.Truncate(filepath.Join(dir, "data", "part-00001.parquet"), 100))
	again, err := run(dir, in, small)
	require.NoError(t, err)
	require.Equal(t, 1, again.resumed)
	require.Equal(t, contents(t, want), contents(t, dir))
}

// childDir names the folder in which the test binary writes the set and then exits.
const childDir = "TURNPACK_SHARD_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if _, err := run(dir, rows(24), small); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A writer that is killed at random moments and finally runs to the end leaves the same bytes
// as an uninterrupted run.
func TestKilledWriters(t *testing.T) {
	child := func(dir string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		return cmd
	}
	reference := t.TempDir()
	start := time.Now()
	out, err := child(reference).CombinedOutput()
	require.NoError(t, err, "%s", out)
	took := time.Since(start)
	want := contents(t, reference)

	points := 56
	if testing.Short() {
		points = 6
	}
	if v, err := strconv.Atoi(os.Getenv("TURNPACK_KILLS")); err == nil {
		points = v
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, a run takes %v", seed, took)
	r := rand.New(rand.NewPCG(seed, 0))
	killed, early := 0, 0
	dir := ""
	for killed < points {
		if dir == "" {
			dir = t.TempDir()
		}
		cmd := child(dir)
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(r.Float64() * float64(took)))
		_ = cmd.Process.Kill()
		err := cmd.Wait()
		state := contents(t, dir)
		if err == nil {
			require.Equal(t, want, state)
			early, dir = early+1, ""
			require.Less(t, early, 20*points, "kills come too late")
			continue
		}
		killed++
		for name := range state { // a file under its final name is complete
			if filepath.Ext(name) == ".parquet" {
				require.Equal(t, want[name], state[name], "after kill %d", killed)
			}
		}
		if _, whole := state[shard.ManifestName]; whole && len(state) == len(want) || r.IntN(3) == 0 {
			if _, unfinished := state[shard.ProgressName]; unfinished || state[shard.ManifestName] == "" {
				out, err := child(dir).CombinedOutput()
				require.NoError(t, err, "%s", out)
				state = contents(t, dir)
			}
			delete(state, ".turnpack.lock") // killed after the set was complete
			require.Equal(t, want, state)
			dir = ""
		}
	}
	t.Logf("%d kills, %d runs ended before theirs", killed, early)
}

// On a full disk the finished shards stay.
func TestFolderThatCannotBeWritten(t *testing.T) {
	_, err := shard.Create(filepath.Join(t.TempDir(), "none"), small)
	require.ErrorContains(t, err, "make the folder first")
	require.ErrorIs(t, err, rollout.KindInput)
	if os.Getuid() == 0 {
		t.Skip("SKIPPED: root writes everywhere; run as another user")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	_, err = shard.Create(dir, small)
	require.ErrorContains(t, err, "writable")
}

// If a set is discarded before its first shard, or ends without one, the folder can be used with
// other options; if a set with shards is aborted, it cannot.
func TestNothingToGoOnFrom(t *testing.T) {
	for _, made := range []bool{false, true} {
		dir := t.TempDir()
		o := shard.Options{GroupsPerShard: 1, Source: "one"}
		if made {
			o.Maker = &shard.Maker{ID: "one", Names: func(i int) []string { return []string{fmt.Sprint(i)} }, Write: func(i int, _ []rollout.Sample) error {
				return os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("x"), 0o644)
			}}
		}
		set, err := shard.Create(dir, o)
		require.NoError(t, err)
		require.NoError(t, set.SetState([]byte("{}")))
		require.NoError(t, set.Write(rows(1)[0]))
		require.Empty(t, set.Shards())
		require.NoError(t, set.Discard())
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
		o.GroupsPerShard = 2
		set, err = shard.Create(dir, o)
		require.NoError(t, err)
		require.NoError(t, set.Write(rows(1)[0]))
		require.NoError(t, set.EndStep())
		require.Len(t, set.Shards(), 1)
		require.NoError(t, set.Abort())
		o.GroupsPerShard = 3
		_, err = shard.Create(dir, o)
		require.ErrorIs(t, err, export.ErrOtherRun)
		require.ErrorContains(t, err, "convert --force")
	}
	dir, failed := t.TempDir(), errors.New("failed")
	set, err := shard.Create(dir, shard.Options{Source: "one", Maker: &shard.Maker{Names: func(i int) []string { return []string{"in/a/folder"} }, Write: func(int, []rollout.Sample) error {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "in", "a"), 0o755))
		return failed
	}}})
	require.NoError(t, err)
	require.NoError(t, set.Write(rows(1)[0]))
	require.ErrorIs(t, set.Close(), failed, "its only shard")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Options that would lose rows, or that cannot be used, are refused.
func TestNamesThatLoseRowsAreRefused(t *testing.T) {
	_, err := run(t.TempDir(), rows(3), shard.Options{GroupsPerShard: 1, Name: func(int) string { return "one.parquet" }})
	require.ErrorContains(t, err, `shards 0 and 1 are both named "one.parquet"`)
	for _, m := range []*shard.Maker{{}, {Names: func(int) []string { return nil }, Write: func(int, []rollout.Sample) error { return nil }}} {
		_, err = shard.Create(t.TempDir(), shard.Options{Maker: m})
		require.ErrorContains(t, err, "Options.Maker")
	}
	dir := t.TempDir()
	_, err = run(dir, rows(3), shard.Options{GroupsPerShard: 1, Maker: &shard.Maker{Names: func(i int) []string { return []string{"one"}[min(i, 1):] }, Write: func(int, []rollout.Sample) error {
		return os.WriteFile(filepath.Join(dir, "one"), []byte("x"), 0o644)
	}}})
	require.ErrorIs(t, err, rollout.KindInput)
	require.ErrorContains(t, err, "Options.Maker: Names gives no file for shard 1")
	for _, name := range []string{"../x.parquet", "/x.parquet", "a//x.parquet", "a/.x.parquet", "manifest.json"} {
		_, err = run(t.TempDir(), rows(1), shard.Options{Name: func(int) string { return name }})
		require.ErrorContains(t, err, "is no name for a shard", name)
	}
	_, err = shard.Create("", shard.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
	_, err = shard.Merge(shard.Options{}, []*shard.Manifest{nil})
	require.ErrorIs(t, err, rollout.KindInput)
}

// A maker, whose formats hold one entry per token, gets short rows of runs expanded; very long
// ones are refused before that.
func TestMakersTakeWholeRows(t *testing.T) {
	dir := t.TempDir()
	var made []rollout.Sample
	o := shard.Options{Maker: &shard.Maker{Names: func(int) []string { return []string{"one"} }, Write: func(_ int, rows []rollout.Sample) error {
		made = rows
		return os.WriteFile(filepath.Join(dir, "one"), nil, 0o644)
	}}}
	plain := rows(1)[0]
	plain.IDs, plain.Weight, plain.Flags, plain.Turn, plain.Source = []rollout.TokenID{1, 2, 3, 4}, []float32{0, 0, 1, 1}, make([]rollout.Flag, 4), make([]int32, 4), make([]int32, 4)
	runs := plain
	runs.IDs, runs.Weight, runs.Flags, runs.Turn, runs.Source = plain.IDs[:3], plain.Weight[:3], plain.Flags[:3], plain.Turn[:3], plain.Source[:3]
	for last, refused := range map[int32]bool{2: false, 2 + 1<<22: true} {
		set, err := shard.Create(dir, o)
		require.NoError(t, err)
		if err := set.WriteRuns(runs, []int32{1, 1, last}, append(slices.Clone(plain.IDs), make([]rollout.TokenID, last-2)...), nil); refused {
			require.ErrorContains(t, err, "rows of more than 4194304")
			require.NoError(t, set.Abort())
			continue
		}
		require.NoError(t, set.Close())
		require.Equal(t, []rollout.Sample{plain}, made)
		o.Force = true
	}
}

// A manifest that names files outside of its folder has them neither read nor removed.
func TestShardsOutsideTheFolder(t *testing.T) {
	top := t.TempDir()
	dir, other := filepath.Join(top, "set"), filepath.Join(top, "other")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(other, []byte("of another"), 0o644))
	_, err := run(dir, rows(1), shard.Options{})
	require.NoError(t, err)
	name := filepath.Join(dir, shard.ManifestName)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, bytes.ReplaceAll(text, []byte("data/part-00000.parquet"), []byte("../other")), 0o644))
	require.ErrorContains(t, shard.Verify(dir), "lies outside its folder")
	_, err = run(dir, rows(1), shard.Options{Force: true})
	require.NoError(t, err)
	require.FileExists(t, other)
}
