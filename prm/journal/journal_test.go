package journal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/prm/journal"
	"github.com/turnpack/turnpack/rollout"
)

func record(i int) journal.Record {
	return journal.Record{
		Key:  journal.Key{Rollout: fmt.Sprint("r", i/10), Step: i % 10, Vote: i % 3, Prompt: "p"},
		Seed: int64(i), Text: fmt.Sprintf("vote %d <&> \u2028 \\boxed{1}", i), CompletionTokens: i,
	}
}

func fill(t *testing.T, path string, n int) {
	t.Helper()
	j, err := journal.Open(path)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, j.Append(record(i)))
	}
	require.NoError(t, j.Close())
	require.NoError(t, j.Close(), "a second Close does nothing")
}

func TestAppendAndResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "votes.journal")
	fill(t, path, 20)
	j, err := journal.Open(path)
	require.NoError(t, err)
	defer j.Close()
	require.Equal(t, journal.Stats{Votes: 20}, j.Stats())
	for i := range 20 {
		got, ok, err := j.Lookup(record(i).Key)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, record(i), got)
	}
	_, ok, err := j.Lookup(journal.Key{Rollout: "r0", Prompt: "another prompt"})
	require.NoError(t, err)
	require.False(t, ok)

	odd := journal.Record{Key: journal.Key{Rollout: "\xff\xfe id"}, Text: "kept"}
	require.NoError(t, j.Append(odd))
	_, ok, err = j.Lookup(odd.Key)
	require.NoError(t, err)
	require.True(t, ok, "an id that is not valid UTF-8 is found again")

	failed := journal.Record{Key: journal.Key{Rollout: "x"}, Error: "connection reset"}
	require.NoError(t, j.Append(failed))
	_, ok, err = j.Lookup(failed.Key)
	require.NoError(t, err)
	require.False(t, ok, "a failed vote is asked again")
	require.NoError(t, j.Append(journal.Record{Key: failed.Key, Text: "now"}))
	got, ok, err := j.Lookup(failed.Key)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "now", got.Text)
}

// Every strict prefix of a journal can be opened, keeps the whole lines before the cut, and accepts
// new votes that are there at the next opening.
func TestTornTailAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole")
	fill(t, path, 4)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := range len(whole) {
		torn := filepath.Join(dir, fmt.Sprint("torn", cut))
		require.NoError(t, os.WriteFile(torn, whole[:cut], 0o600))
		j, err := journal.Open(torn)
		require.NoError(t, err, "cut at byte %d", cut)
		want := max(0, bytes.Count(whole[:cut], []byte("\n"))-1)
		require.Equal(t, want, j.Stats().Votes, "cut at byte %d", cut)
		require.NoError(t, j.Append(record(30)))
		require.NoError(t, j.Close())
		j, err = journal.Open(torn)
		require.NoError(t, err)
		require.Equal(t, journal.Stats{Votes: want + 1}, j.Stats())
		require.NoError(t, j.Close())
		require.NoError(t, os.Remove(torn))
	}
	require.NoError(t, os.WriteFile(path, append(whole, bytes.Repeat([]byte("x"), 500)...), 0o600))
	for _, want := range []journal.Stats{{Votes: 4, Torn: 500}, {Votes: 5}} { // nothing is left of a tail longer than the next vote
		j, err := journal.Open(path)
		require.NoError(t, err)
		require.Equal(t, want, j.Stats())
		require.NoError(t, j.Append(record(30)))
		require.NoError(t, j.Close())
	}
}

func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole")
	fill(t, path, 6)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	write := func(b []byte) string {
		p := filepath.Join(dir, "damaged")
		require.NoError(t, os.WriteFile(p, b, 0o600))
		return p
	}
	flip := func(line int) []byte {
		b := bytes.Clone(whole)
		at := len(bytes.Join(lines[:line], nil)) + 20
		b[at] ^= 1
		return b
	}

	_, err = journal.Open(write(flip(3)))
	require.ErrorIs(t, err, rollout.KindFormat, "damage in the middle is not cut off in silence")
	var located *rollout.Error
	require.ErrorAs(t, err, &located)
	at, _ := located.Where.Byte.Get()
	require.Equal(t, len(bytes.Join(lines[:3], nil)), at)

	j, err := journal.Open(write(flip(6)))
	require.NoError(t, err, "a bad last line is a torn end")
	require.Equal(t, journal.Stats{Votes: 5, Torn: int64(len(lines[6]))}, j.Stats())
	require.NoError(t, j.Close())

	zeroed := append(bytes.Clone(whole), make([]byte, 4096)...)
	j, err = journal.Open(write(zeroed))
	require.NoError(t, err, "a file system may leave zeros at the end")
	require.Equal(t, 6, j.Stats().Votes)
	require.NoError(t, j.Close())

	for _, foreign := range []string{"precious text\n", "x", "deadbeef {}\n", strings.Repeat("\x00", 50)} {
		p := write([]byte(foreign))
		_, err := journal.Open(p)
		require.ErrorIs(t, err, rollout.KindFormat)
		kept, err := os.ReadFile(p)
		require.NoError(t, err)
		require.Equal(t, foreign, string(kept), "a foreign file is left as it is")
	}
}

func TestOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "votes.journal")
	j, err := journal.Open(path)
	require.NoError(t, err)
	_, err = journal.Open(path)
	require.ErrorContains(t, err, "lock")
	require.NoError(t, j.Close())
	j, err = journal.Open(path)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.Error(t, j.Append(record(0)), "append after close")
}

func TestConcurrentAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "votes.journal")
	j, err := journal.OpenAs(path, 7, time.Second)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				r := record(i)
				r.Rollout = fmt.Sprint("g", g)
				r.Vote = i
				if err := j.Append(r, journal.Record{Key: journal.Key{Rollout: fmt.Sprint("g", g), Step: -1, Vote: i}, Text: "pair"}); err != nil {
					t.Error(err)
				}
				if _, ok, err := j.Lookup(r.Key); !ok || err != nil {
					t.Error("lost", ok, err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, j.Close())
	j, err = journal.Open(path)
	require.NoError(t, err)
	require.Equal(t, 800, j.Stats().Votes)
	require.NoError(t, j.Close())
}

func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "seed")
	j, err := journal.Open(path)
	require.NoError(f, err)
	require.NoError(f, j.Append(record(1), record(2)))
	require.NoError(f, j.Close())
	seed, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(seed)
	f.Add(seed[:len(seed)-3])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := filepath.Join(t.TempDir(), "j")
		require.NoError(t, os.WriteFile(p, b, 0o600))
		j, err := journal.Open(p)
		if err != nil {
			return
		}
		votes := j.Stats().Votes
		require.NoError(t, j.Append(record(77)))
		require.NoError(t, j.Close())
		j, err = journal.Open(p)
		require.NoError(t, err, "what was accepted once is accepted again")
		require.GreaterOrEqual(t, j.Stats().Votes, max(votes, 1))
		require.NoError(t, j.Close())
	})
}
