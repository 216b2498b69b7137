package stream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
)

// row returns a row with two trained tokens.
func row(group string, id int32) rollout.Sample {
	seq, err := rollout.Columns{
		IDs: []rollout.TokenID{id, id + 1, id + 1}, Source: []int32{0, 0, 0}, Turn: []int32{-1, 0, 0},
		Flags:   []rollout.Flag{0, rollout.FlagSampled, rollout.FlagSampled},
		Logprob: []float32{0, -0.5, -0.25},
	}.Sequence(rollout.Identity{Rollout: group + "#0", Group: group, Tokenizer: "sha256:aa", Template: "sha256:bb"}, 0)
	if err != nil {
		panic(err)
	}
	seq.Weight = []float32{0, 1, 1}
	advantage := 0.5
	return rollout.FinishRows([]rollout.Sample{{Sequence: seq, Advantage: &advantage, Status: rollout.StatusCompleted, Temperature: 1}})[0]
}

func add(s *stream.Stream, group string, id int32) (stream.Batch, error) {
	return s.Add(stream.Key{Group: group}, nil, func(w *export.Writer) error { return w.Write(row(group, id)) })
}

func Example() {
	dir, err := os.MkdirTemp("", "stream")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := stream.Open(dir, export.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for range 2 { // the second time, the batch exists
		b, err := add(s, "task-7", 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(b.Seq, b.File, b.Rows, b.Tokens, b.Trained)
	}
	var arrow bytes.Buffer
	if err := s.WriteArrow(&arrow, 1); err != nil {
		panic(err)
	}
	r, err := export.NewReader(bytes.NewReader(arrow.Bytes()), int64(arrow.Len()))
	if err != nil {
		panic(err)
	}
	first, err := r.Read()
	if err != nil {
		panic(err)
	}
	fmt.Println(first.ID, "of batch", r.Info().GroupSeq)
	// Output:
	// 1 data/batch_000001.parquet 1 3 2
	// 1 data/batch_000001.parquet 1 3 2
	// task-7#0#0 of batch 1
}

func open(t *testing.T, dir string) *stream.Stream {
	t.Helper()
	s, err := stream.Open(dir, export.Options{Metadata: map[string]string{"recipe": "r"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// all returns the batches of the index.
func all(t *testing.T, s *stream.Stream) (out []stream.Batch) {
	t.Helper()
	for b, err := range s.Batches() {
		require.NoError(t, err)
		out = append(out, b)
	}
	return out
}

// A refused batch leaves nothing and uses no number; the others have the same bytes as a
// conversion of their group alone.
func TestTransactions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := add(s, "a", 1)
	require.NoError(t, err)
	bad := errors.New("the reward function failed")
	_, err = s.Add(stream.Key{Group: "b"}, nil, func(w *export.Writer) error { return errors.Join(w.Write(row("b", 1)), bad) })
	require.ErrorIs(t, err, bad)
	_, err = s.Add(stream.Key{Group: "b"}, nil, func(w *export.Writer) error {
		x := row("b", 1)
		x.Temperature = -1
		return w.Write(x)
	})
	refused, ok := errors.AsType[*export.RefusedError](err)
	require.True(t, ok, err)
	require.EqualValues(t, "sampling", refused.Rule)
	none, err := s.Add(stream.Key{Group: "b"}, nil, func(*export.Writer) error { return nil })
	require.NoError(t, err)
	require.Zero(t, none.Seq)
	again, err := s.Add(stream.Key{Group: "b", Step: 1}, []byte(`{"sessions":["x"]}`), func(w *export.Writer) error { return w.Write(row("b", 5)) })
	require.NoError(t, err)
	require.Equal(t, 2, again.Seq)
	files, err := os.ReadDir(filepath.Join(dir, "data"))
	require.NoError(t, err)
	require.Len(t, files, 2, "and nothing half done")

	alone := filepath.Join(t.TempDir(), "alone.parquet")
	w, err := export.Create(alone, export.Options{Metadata: map[string]string{"recipe": "r"}})
	require.NoError(t, err)
	require.NoError(t, w.Write(row("b", 5)))
	require.NoError(t, w.Close())
	want, err := os.ReadFile(alone)
	require.NoError(t, err)
	got, err := os.ReadFile(s.Path(again))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Len(t, all(t, s), 2)
	require.JSONEq(t, `{"sessions":["x"]}`, string(all(t, s)[1].Note))
}

func TestArrow(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range 3 {
		_, err := add(s, fmt.Sprint("g", i), int32(i))
		require.NoError(t, err)
	}
	var first, second bytes.Buffer
	require.NoError(t, s.WriteArrow(&first, 2))
	require.NoError(t, s.Close())
	s = open(t, dir)
	require.NoError(t, s.WriteArrow(&second, 2))
	require.Equal(t, first.Bytes(), second.Bytes(), "after a restart too")
	r, err := export.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	require.NoError(t, err)
	require.Equal(t, 2, r.Info().GroupSeq)
	require.Equal(t, map[string]string{"recipe": "r"}, r.Info().Metadata)
	got, err := r.Read()
	require.NoError(t, err)
	rows, info, err := export.ReadAll(s.Path(all(t, s)[1]))
	require.NoError(t, err)
	require.Equal(t, rows[0], got)
	require.Equal(t, info.Columns, r.Info().Columns)
	require.Zero(t, info.GroupSeq, "the file says nothing of the stream")
	require.ErrorContains(t, s.WriteArrow(&second, 4), "no batch 4")
	require.NoError(t, os.Remove(s.Path(all(t, s)[0])))
	require.ErrorContains(t, s.WriteArrow(&second, 1), "was removed")
}

// A killed writer can leave a truncated line, or a line whose file was not renamed yet.
func TestAfterAKill(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(t *testing.T, dir, line string)
		next  int
	}{
		"a cut line": {func(t *testing.T, dir, line string) { put(t, dir, line[:len(line)/2]) }, 2},
		"a file without its name": {func(t *testing.T, dir, line string) {
			put(t, dir, line)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "data", ".batch_000002.parquet.17.partial"), []byte("half"), 0o600))
		}, 2},
		"a file that was taken": {func(t *testing.T, dir, line string) { put(t, dir, line) }, 3},
		"a file without its line": {func(t *testing.T, dir, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "batch_000002.parquet"), []byte("whole"), 0o600))
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a[b]c") // a name, not a pattern
			s := open(t, dir)
			_, err := add(s, "a", 1)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			c.leave(t, dir, `{"seq":2,"group":"b","step":0,"file":"data/batch_000002.parquet","digest":"sha256:00","rows":1,"tokens":1,"trained":1}`+"\n")
			s = open(t, dir)
			_, there := s.Find(stream.Key{Group: "b"})
			require.False(t, there)
			b, err := add(s, "b", 2)
			require.NoError(t, err)
			require.Equal(t, c.next, b.Seq)
			require.NoError(t, s.Close())
			s = open(t, dir)
			require.Equal(t, b, all(t, s)[len(all(t, s))-1])
			files, err := os.ReadDir(filepath.Join(dir, "data"))
			require.NoError(t, err)
			for _, f := range files {
				require.NotEqual(t, '.', rune(f.Name()[0]), f.Name())
			}
		})
	}
}

func put(t *testing.T, dir, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "batches.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := stream.Open(dir, export.Options{})
	require.ErrorIs(t, err, export.ErrLocked)
	require.NoError(t, s.Close())
	_, err = add(s, "a", 1)
	require.ErrorIs(t, err, export.ErrClosed)
	put(t, dir, "{\"seq\":0}\n")
	_, err = stream.Open(dir, export.Options{})
	require.ErrorContains(t, err, "batches.jsonl:1")
	_, err = stream.Open(dir, export.Options{GroupRows: -1})
	require.Error(t, err)
}

// An index that cannot be opened is the only cause that is told, and the folder is unlocked.
func TestIndexThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	index := filepath.Join(dir, "batches.jsonl")
	require.NoError(t, os.Mkdir(index, 0o755))
	_, err := stream.Open(dir, export.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
	require.NotErrorIs(t, err, os.ErrInvalid)
	require.NoError(t, os.Remove(index))
	open(t, dir)
}

// After any error, Add returns the zero Batch.
func TestWhatCannotBeAddedIsNoBatch(t *testing.T) {
	_, err := stream.Open("", export.Options{})
	require.ErrorIs(t, err, rollout.KindInput)
	s := open(t, t.TempDir())
	b, err := s.Add(stream.Key{Group: "g"}, json.RawMessage("{"), func(w *export.Writer) error { return w.Write(row("g", 1)) })
	require.ErrorContains(t, err, "note")
	require.Zero(t, b)
	_, err = s.Add(stream.Key{Group: "g"}, nil, nil)
	require.ErrorIs(t, err, rollout.KindInput)
	b, err = add(s, "g", 1)
	require.NoError(t, err)
	require.Equal(t, 1, b.Seq, "nothing was left")
}
