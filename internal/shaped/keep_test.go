package shaped

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// rejected returns the reasons for the members of one group.
func rejected(t *testing.T, text string, g Group) []string {
	k, err := shaping.ParseKeep(text)
	require.NoError(t, err)
	r := Rules{Keep: k}
	require.NoError(t, shaping.Rules(r).Validate())
	require.True(t, r.Decides())
	var report shaping.Report
	got, err := r.Decide([]Group{g}, &report)
	require.NoError(t, err)
	var out []string
	n := 0
	for i, f := range got[0] {
		out = append(out, f.Out)
		if f.Out != "" {
			n++
			require.Equal(t, g.Members[i].Excluded == "", f.Counts, "a rejected rollout that has a reward stays in the statistics")
		}
	}
	counted := 0
	for _, c := range report.Rollouts {
		counted += c
	}
	require.Equal(t, n, counted, "each is counted")
	return out
}

func TestKeep(t *testing.T) {
	g := group("g", 0.5, 1, 0, 1, 0.5, 1)
	g.Members[3].Masked = "truncated"    // must not take a place among the best, since it gives no rows
	g.Members[4].Excluded = "no outcome" // its reward must be ignored
	yes, no := true, false
	for i := range g.Members {
		g.Members[i].Solved = &no
	}
	g.Members[1].Solved, g.Members[4].Solved = &yes, nil
	const r, b, x = reasonRejected, reasonNotBest, "no outcome"
	require.Equal(t, []string{"", "", r, "", x, ""}, rejected(t, "reward>0", g))
	require.Equal(t, []string{r, "", r, "", x, ""}, rejected(t, "reward>=1", g))
	require.Equal(t, []string{r, "", r, "", x, r}, rejected(t, "resolved", g))
	require.Equal(t, []string{b, "", b, "", x, b}, rejected(t, "best", g), "of equal ones the first")
	require.Equal(t, []string{b, "", b, "", x, ""}, rejected(t, "best:2", g))
	require.Equal(t, []string{"", "", r, "", x, ""}, rejected(t, "best:9,reward>0", g))
}

func TestKeepNeedsRewards(t *testing.T) {
	g := group("g", 1, 1)
	g.Members[0].Excluded, g.Members[1].Excluded = "no outcome", "no outcome"
	r := Rules{Keep: shaping.Keep{Resolved: true}}
	_, err := r.Decide([]Group{g}, &shaping.Report{})
	require.ErrorContains(t, err, "none of the 2 rollouts has a reward")
	require.ErrorContains(t, err, "--rewards")
	require.ErrorIs(t, shaping.Rules{Keep: shaping.Keep{Best: -1}}.Validate(), rollout.KindInput)
}
