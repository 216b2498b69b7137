package clients

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/format"
)

// A session with too many branches gets one note where the contexts end.
func TestTooManyBranches(t *testing.T) {
	in := &format.File{}
	c := newChain(in)
	parent := ""
	add := func(id string, hidden bool) {
		require.NoError(t, c.add(id, parent, &link{hidden: hidden}, func() {
			c.t.Say(rollout.Message{Role: rollout.RoleAssistant, Sampled: rollout.SampledByPolicy})
		}))
		parent = id
	}
	add("a", false)
	add("b", true) // what follows does not see it
	add("c", false)
	require.Len(t, c.parts[2], 1)
	require.Empty(t, in.Notes)
	c.steps = maxSteps
	add("d", false)
	add("e", false)
	require.Equal(t, map[int]bool{3: true, 4: true}, c.t.Unseen)
	require.Len(t, c.parts, 1)
	require.Len(t, in.Notes, 1)
	require.Equal(t, "context_lost", in.Notes[0].Code)
	require.Equal(t, rollout.At(3), in.Notes[0].Message)
	require.Contains(t, in.Notes[0].Text, "too many")
}
