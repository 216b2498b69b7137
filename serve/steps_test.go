package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
)

// A step that a full disk or too many open files prevent is written when there is room, without another group:
// where the trainer waits for the step, there will be none.
func TestStepIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	told := make(chan error, 100)
	s := start(t, dir, Groups{Size: 1, StepGroups: 1, Refused: func(_ stream.Key, err error) { told <- err }})
	steps := filepath.Join(dir, "out", "steps")
	require.NoError(t, os.Rename(steps, steps+"x"))
	s.play(t, "a", 1)
	_, err := s.End(t.Context(), "a", resolved("g", true))
	require.NoError(t, err)
	require.Error(t, <-told)
	require.NoError(t, os.Rename(steps+"x", steps))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(steps, "step_0.parquet"))
		return err == nil
	}, 20*time.Second, time.Millisecond)
	s.close(t)
}

// Completed groups become step files with the rewards of their rollouts and the version of each token, also
// after a restart.
func TestStepFiles(t *testing.T) {
	dir := t.TempDir()
	o := Groups{Size: 2, StepGroups: 2, Refused: func(_ stream.Key, err error) { t.Error(err) }}
	o.Rows = func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
		_, err := turnpack.Pipeline{Scale: reward.OutcomePolicy{Outcome: "auto"}}.Run(ctx, turnpack.Slice(group), w)
		return err
	}
	s := start(t, dir, o)
	end := func(group int) {
		t.Helper()
		for i := range 2 {
			id, reward := fmt.Sprintf("%d#%d", group, i), float64(group)+0.25*float64(i)
			s.play(t, id, int32(10*group+i))
			_, err := s.End(t.Context(), id, endRequest{Group: fmt.Sprint(group), Reward: &reward})
			require.NoError(t, err)
		}
	}
	step := func(n int) string {
		return filepath.Join(dir, "out", "steps", fmt.Sprintf("step_%d.parquet", n))
	}
	written := func(path string) func() bool {
		return func() bool { _, err := os.Stat(path); return err == nil }
	}
	end(0)
	end(1)
	end(2)
	require.Eventually(t, written(step(0)), 20*time.Second, time.Millisecond)
	require.NoFileExists(t, step(1))
	s.close(t)
	s = start(t, dir, o)
	end(3)
	require.Eventually(t, written(step(1)), 20*time.Second, time.Millisecond)
	s.close(t)
	for n := range 2 {
		rows, _, err := export.ReadAll(step(n))
		require.NoError(t, err)
		require.Len(t, rows, 4)
		for i, r := range rows {
			group, index := 2*n+i/2, i%2
			require.Equal(t, fmt.Sprintf("%d#%d", group, index), r.Rollout)
			require.InDelta(t, float64(group)+0.25*float64(index), r.Reward, 1e-6)
			require.Equal(t, []int32{-1, -1, -1, int32(10*group + index), int32(10*group + index)}, r.Version)
		}
	}
	left, err := os.ReadDir(filepath.Join(dir, "out", "data"))
	require.NoError(t, err)
	require.Empty(t, left)

	// No trainer can take the batches of this folder one by one.
	o.StepGroups = 0
	rec, err := live.New(live.Options{})
	require.NoError(t, err)
	out, err := stream.Open(filepath.Join(dir, "out"), export.Options{})
	require.NoError(t, err)
	_, err = newQueue(rec, out, o, func() *int32 { return nil })
	require.ErrorContains(t, errors.Join(err, out.Close()), "--groups-per-step 2")
}
