package traj_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/internal/kit"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// A reading that may skip past rollouts yields the others unchanged and in order, for every
// recorded dump and every set of past rollouts, and has the report of the whole reading.
func TestRolloutsBut(t *testing.T) {
	kit.OneGoroutine(t)
	root := kit.Dir(t, "data", "trajectories")
	folders, err := os.ReadDir(root)
	require.NoError(t, err)
	passed := 0
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		for _, opt := range []traj.Options{{}, {Dedup: true, JoinCalls: true}} {
			first, err := traj.NewSource([]string{filepath.Join(root, f.Name())}, opt)
			require.NoError(t, err)
			var want []*rollout.Rollout
			for r, err := range first.Rollouts(context.Background()) {
				if err == nil {
					want = append(want, r)
				}
			}
			memory, err := first.Memory()
			require.NoError(t, err)
			for _, every := range []int{1, 4} {
				if every == 4 && opt.Dedup {
					continue
				}
				past := map[string]bool{}
				for i, r := range want {
					past[r.ID] = (i+1)%every == 0 || i < len(want)/2
				}
				src, err := traj.NewSource([]string{filepath.Join(root, f.Name())}, opt)
				require.NoError(t, err)
				left := want
				for r, err := range src.RolloutsBut(context.Background(), memory, func(id string) bool { return past[id] }) {
					if err != nil {
						continue
					}
					for left[0].ID != r.ID {
						require.True(t, past[left[0].ID], left[0].ID)
						left = left[1:]
						passed++
					}
					require.Empty(t, differ(left[0], r), r.ID)
					left = left[1:]
				}
				for _, r := range left {
					require.True(t, past[r.ID], r.ID)
					passed++
				}
				a, b := *first.Report(), *src.Report()
				require.Equal(t, fmt.Sprint(a.Errors), fmt.Sprint(b.Errors))
				a.Errors, b.Errors = nil, nil
				require.Equal(t, a, b)
			}
		}
	}
	t.Logf("%d rollouts were passed over", passed)
	require.NotZero(t, passed)
}

// A source that read nothing to the end has an empty report and no memory.
func TestMemoryBeforeAReading(t *testing.T) {
	path := write(t, t.TempDir(), "a.jsonl", []byte(chat("a")+"\n"+chat("b")))
	src, err := traj.NewSource([]string{path}, traj.Options{})
	require.NoError(t, err)
	refused := func() {
		t.Helper()
		_, err := src.Memory()
		require.ErrorIs(t, err, rollout.KindInput)
		require.ErrorContains(t, err, "nothing was read yet")
		require.Equal(t, &traj.Report{Formats: map[string]int{}}, src.Report())
	}
	refused()
	for range src.Rollouts(context.Background()) {
		break
	}
	refused()
	for _, err := range src.Rollouts(context.Background()) {
		require.NoError(t, err)
	}
	memory, err := src.Memory()
	require.NoError(t, err)
	require.Contains(t, string(memory), `"Rollouts":2`)
	require.Equal(t, 2, src.Report().Rollouts)
}
