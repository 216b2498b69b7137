package traj_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/rollout/traj"
)

// Rollouts of which token ids are all that is recorded, or all that is recorded of the replies,
// repeat one only with the same ids.
func TestDuplicatesByIDs(t *testing.T) {
	for name, messages := range map[string]string{"ids alone": "", "prompts as messages": `"messages":[{"role":"user","content":"Go."}],`} {
		line := `{"turnpack_version":1,"group":"g",` + messages + `"turns":[{"prompt_ids":[1,2],"output_ids":[3,OWN]}]}` + "\n"
		path := filepath.Join(t.TempDir(), "ids.jsonl")
		text := strings.ReplaceAll(line, "OWN", "4") + strings.ReplaceAll(line, "OWN", "5") + strings.ReplaceAll(line, "OWN", "4")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		r, err := traj.Open([]string{path}, traj.Options{Dedup: true})
		require.NoError(t, err)
		n := 0
		for _, err := range r.All() {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 2, n, name)
		require.Equal(t, 2, r.Report().Repeats[0].This.Index, name)
	}
}

// Rollouts of token ids alone are of one prompt if its ids are equal.
func TestGroupsByPromptIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	const line = `{"turnpack_version":1,"turns":[{"prompt_ids":[1,P],"output_ids":[3]}]}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(line, "P", "2")+strings.ReplaceAll(line, "P", "9")+strings.ReplaceAll(line, "P", "2")), 0o644))
	r, err := traj.Open([]string{path}, traj.Options{GroupBy: "prompt"})
	require.NoError(t, err)
	var groups []string
	for x, err := range r.All() {
		require.NoError(t, err)
		groups = append(groups, x.Group)
	}
	require.Len(t, groups, 3)
	require.Equal(t, groups[0], groups[2])
	require.NotEqual(t, groups[0], groups[1])
}
