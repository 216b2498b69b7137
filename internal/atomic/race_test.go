package atomic_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

const (
	racer  = "TURNPACK_TEST_RACER"
	rounds = 60
)

// If two processes write one output at a time, exactly one wins and the other gets ErrExists.
func TestTwoProcessesOneOutput(t *testing.T) {
	if who := os.Getenv(racer); who != "" {
		for _, path := range strings.Fields(os.Getenv("TURNPACK_TEST_PATHS")) {
			f, err := atomic.Create(path, false)
			if err == nil {
				_, err = f.Write([]byte(who))
				require.NoError(t, err)
				err = f.Commit()
			}
			switch {
			case err == nil:
				fmt.Println("won", path)
			case errors.Is(err, atomic.ErrExists):
				fmt.Println("lost", path)
			default:
				t.Fatal(err)
			}
		}
		return
	}
	dir := t.TempDir()
	var paths []string
	for i := range rounds {
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
	}
	outs := make([]strings.Builder, 2)
	runs := make([]*exec.Cmd, 2)
	for i := range runs {
		runs[i] = exec.Command(os.Args[0], "-test.run=^TestTwoProcessesOneOutput$")
		runs[i].Env = append(os.Environ(), racer+"="+fmt.Sprint(i), "TURNPACK_TEST_PATHS="+strings.Join(paths, " "))
		runs[i].Stdout = &outs[i]
		require.NoError(t, runs[i].Start())
	}
	for i := range runs {
		require.NoError(t, runs[i].Wait(), outs[i].String())
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for i := range outs {
			won := strings.Contains(outs[i].String(), "won "+path+"\n")
			require.Equal(t, string(text) == fmt.Sprint(i), won, "%s holds %s", path, text)
			require.Equal(t, !won, strings.Contains(outs[i].String(), "lost "+path+"\n"))
		}
	}
	require.Len(t, names(t, dir), rounds)
}

// A writer whose output appeared in the meantime does not touch it.
func TestCommitReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	first, err := atomic.Create(path, false)
	require.NoError(t, err)
	second, err := atomic.Create(path, false)
	require.NoError(t, err)
	_, err = first.Write([]byte("first"))
	require.NoError(t, err)
	require.NoError(t, first.Commit())
	err = second.Commit()
	require.ErrorIs(t, err, atomic.ErrExists)
	require.ErrorIs(t, err, rollout.KindInput)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(text))
	require.Equal(t, []string{"a"}, names(t, filepath.Dir(path)))
	require.NoError(t, atomic.WriteFile(path, []byte("forced"), true))
}
