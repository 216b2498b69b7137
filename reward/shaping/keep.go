package shaping

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Keep is rejection sampling: which rollouts give rows. The zero value keeps all. A
// rollout without a reward is kept by none of the rules; those that are rejected stay
// in the statistics of their group.
type Keep struct {
	// Above keeps rewards above a number, AtLeast those of that number or more; nil = any.
	Above, AtLeast *float64
	// Resolved keeps rollouts that solved their task; see Solved.
	Resolved bool
	// Best keeps so many of each group, those of the highest rewards and of equal ones the
	// first; 0 = all.
	Best int
}

// Reasons of rollouts that are not kept.
const (
	reasonRejected = "rejected by its reward"
	reasonNotBest  = "not among the best of its group"
)

// ParseKeep reads what String writes: reward>X, reward>=X, resolved, best or best:N, with
// commas between rules that must all hold; none and an empty text keep all.
func ParseKeep(text string) (Keep, error) {
	var k Keep
	if text == "" || text == "none" {
		return k, nil
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.ReplaceAll(part, " ", "")
		var err error
		switch {
		case part == "resolved":
			k.Resolved = true
		case part == "best":
			k.Best = 1
		case strings.HasPrefix(part, "best:"):
			var n int
			if n, err = strconv.Atoi(part[len("best:"):]); n < 1 {
				err = strconv.ErrRange
			}
			if k.Best == 0 || n < k.Best {
				k.Best = n
			}
		case strings.HasPrefix(part, "reward>="):
			k.AtLeast, err = bound(part[len("reward>="):], k.AtLeast)
		case strings.HasPrefix(part, "reward>"):
			k.Above, err = bound(part[len("reward>"):], k.Above)
		default:
			err = strconv.ErrSyntax
		}
		if err != nil {
			return Keep{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "keep"}, "found %q, expected reward>NUMBER, reward>=NUMBER, resolved, best or best:NUMBER", part).
				WithFix("write one of them, or several with commas between, such as resolved,best:1")
		}
	}
	return k, nil
}

// bound is the number of a rule, or that of the same rule before where it is larger.
func bound(text string, before *float64) (*float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
		err = strconv.ErrRange
	}
	if before != nil {
		x = max(x, *before)
	}
	return &x, err
}

// String is k as ParseKeep reads it.
func (k Keep) String() string {
	var parts []string
	number := func(name string, x *float64) {
		if x != nil {
			parts = append(parts, name+strconv.FormatFloat(*x, 'g', -1, 64))
		}
	}
	number("reward>", k.Above)
	number("reward>=", k.AtLeast)
	if k.Resolved {
		parts = append(parts, "resolved")
	}
	if k.Best > 0 {
		parts = append(parts, "best:"+strconv.Itoa(k.Best))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ",")
}

func (k *Keep) on() bool { return k.Above != nil || k.AtLeast != nil || k.Resolved || k.Best > 0 }

func (k *Keep) takes(m *Member) bool {
	return (k.Above == nil || m.Reward > *k.Above) && (k.AtLeast == nil || m.Reward >= *k.AtLeast) &&
		(!k.Resolved || m.Solved != nil && *m.Solved)
}

// apply rejects members that are still there.
func (k *Keep) apply(groups []Group, out [][]Fate, report *Report) error {
	if !k.on() {
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
			case out[i][j].Out != "" || m.Masked != "": // gives no row, and takes no place
			case m.Excluded != "":
				out[i][j] = Fate{Out: m.Excluded}
				add(&report.Rollouts, m.Excluded)
			case !k.takes(m):
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
			x, y := groups[i].Members[a].Reward, groups[i].Members[b].Reward
			switch {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
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
