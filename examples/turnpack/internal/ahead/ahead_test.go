package ahead

import (
	"context"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// dump is a file of 50 rollouts and a record that cannot be read.
func dump(t *testing.T) []string {
	var b strings.Builder
	for i := range 50 {
		if i == 20 {
			b.WriteString("{\"id\": \n")
		}
		fmt.Fprintf(&b, `{"id": "r%d", "messages": [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Gone %d."}], "resolved": true}`+"\n", i, i)
	}
	path := filepath.Join(t.TempDir(), "dump.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	return []string{path}
}

// all are the rollouts and the errors between them.
func all(seq iter.Seq2[*rollout.Rollout, error]) (out []any) {
	for r, err := range seq {
		if err != nil {
			out = append(out, err.Error())
		} else {
			out = append(out, r)
		}
	}
	return out
}

// However far the reading has come, and however often it is asked for, it is that of the
// source itself.
func TestReadsAsTheSource(t *testing.T) {
	paths := dump(t)
	plain, err := traj.NewSource(paths, traj.Options{})
	require.NoError(t, err)
	want := all(plain.Rollouts(t.Context()))
	require.Len(t, want, 51)
	for _, most := range []int64{0, 1, 20_000, math.MaxInt64} {
		for _, waits := range []bool{false, true} {
			s, err := begin(t.Context(), paths, traj.Options{}, "", func() {}, most)
			require.NoError(t, err)
			if waits {
				<-s.begun.Load().idle
			}
			require.Equal(t, want, all(s.Rollouts(t.Context())), "%d bytes", most)
			require.Equal(t, plain.Report(), s.Report())
			require.Equal(t, want, all(s.Rollouts(t.Context())), "again")
			s.Stop()
		}
	}
}

func TestHoldsSoMuch(t *testing.T) {
	s, err := begin(t.Context(), dump(t), traj.Options{}, "", func() {}, 20_000)
	require.NoError(t, err)
	r := s.begun.Load()
	<-r.idle
	require.Greater(t, len(r.held), 5)
	require.Less(t, len(r.held), 40)
	for range s.Rollouts(t.Context()) {
		break
	}
	_, _, more := r.next()
	require.False(t, more, "who leaves the loop ends the reading")
}

func TestStops(t *testing.T) {
	s, err := New(t.Context(), dump(t), traj.Options{}, t.TempDir(), func() {})
	require.NoError(t, err)
	r := s.begun.Load()
	require.NotNil(t, r, "an empty folder holds no run to go on from")
	s.Stop()
	<-r.idle
	require.Len(t, all(s.Rollouts(t.Context())), 51, "from the beginning")
}

func TestBeginsNotWhereFilesAre(t *testing.T) {
	paths := dump(t)
	s, err := New(context.Background(), paths, traj.Options{}, filepath.Dir(paths[0]), nil)
	require.NoError(t, err)
	require.Nil(t, s.begun.Load())
	require.Len(t, all(s.Rollouts(t.Context())), 51)
	s.Stop()
	_, err = New(t.Context(), nil, traj.Options{}, "", nil)
	require.Error(t, err)
}
