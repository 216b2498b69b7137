package shaped

import (
	"cmp"
	"slices"

	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

func selects(k *shaping.Keep) bool {
	return k.Above != nil || k.AtLeast != nil || k.Resolved || k.Best > 0
}

func meetsBounds(k *shaping.Keep, m *Member) bool {
	return (k.Above == nil || m.Reward > *k.Above) && (k.AtLeast == nil || m.Reward >= *k.AtLeast) &&
		(!k.Resolved || m.Solved != nil && *m.Solved)
}

// applyKeep rejects, by k, members that were not left out before.
func applyKeep(k *shaping.Keep, groups []Group, out [][]Fate, report *shaping.Report) error {
	if !selects(k) {
		return nil
	}
	scored, all := 0, 0
	for i := range groups {
		var best []int
		for j := range groups[i].Members {
			m := &groups[i].Members[j]
			if all++; m.Excluded == "" {
				scored++
			}
			switch {
			case out[i][j].Out != "" || m.Masked != "": // gives no rows and takes no place among the best
			case m.Excluded != "":
				out[i][j] = Fate{Out: m.Excluded}
				add(&report.Rollouts, m.Excluded)
			case !meetsBounds(k, m):
				out[i][j] = Fate{Out: reasonRejected, Counts: true}
				add(&report.Rollouts, reasonRejected)
			default:
				best = append(best, j)
			}
		}
		if k.Best == 0 || len(best) <= k.Best {
			continue
		}
		slices.SortStableFunc(best, func(a, b int) int {
			return cmp.Compare(groups[i].Members[b].Reward, groups[i].Members[a].Reward)
		})
		for _, j := range best[k.Best:] {
			out[i][j] = Fate{Out: reasonNotBest, Counts: true}
			add(&report.Rollouts, reasonNotBest)
		}
	}
	if scored == 0 && all > 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Shaping.Keep"}, "none of the %d rollouts has a reward, by which %q could keep some", all, k).
			WithFix("join recorded results (traj.Options.Rewards, --rewards FILE), or keep all")
	}
	return nil
}
