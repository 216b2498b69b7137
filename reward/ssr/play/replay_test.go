package play

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/ssr"
)

// Stored bugs are tried again by their attempts, then by their difficulty, whatever their order.
func TestReplayTakesTheHardestOfEqualAttempts(t *testing.T) {
	diff := func(word string) string { return "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+" + word + "\n" }
	p := &round{Options: Options{Store: &Store{bugs: map[string]Bug{}}, Replay: 2}, repo: &Repository{Name: "r", commit: "c"}}
	for _, b := range []Bug{
		{Fingerprint: "easy", Order: 1, Solved: 7, Live: 8, Artifact: ssr.Artifact{Bug: diff("easy")}},
		{Fingerprint: "hard", Order: 2, Solved: 1, Live: 8, Artifact: ssr.Artifact{Bug: diff("hard"), Attempts: []string{diff("attempt")}}},
		{Fingerprint: "seldom", Order: 2, Solved: 4, Live: 4, Artifact: ssr.Artifact{Bug: diff("seldom"), Attempts: []string{diff("attempt")}}},
	} {
		b.Repository, b.Commit = "r", "c"
		p.Store.put(b)
	}
	bugs, err := p.replay(nil)
	require.NoError(t, err)
	require.Len(t, bugs, 2)
	require.Contains(t, bugs[0].Artifact.Bug, "seldom")
	require.Contains(t, bugs[1].Artifact.Bug, "hard")
}
