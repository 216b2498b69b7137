package traj

import (
	"fmt"
	"sort"
	"strings"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj/internal/outcomes"
)

// join gives a rollout the outcome recorded for it elsewhere, found by rollout id, then by
// the folder of its file, then by instance. If there are outcomes of several runs, it takes
// only the one in the folder of the rollout's run. An outcome named only by instance
// belongs to one attempt, so a second rollout of that instance is a failure, not a copy.
func (rd *Reader) join(r *rollout.Rollout) error {
	joined := len(rd.opt.Rewards) == 0
	for _, x := range rd.opt.Rewards {
		e, by := x.table.Find(r)
		if by == "" {
			continue
		}
		where := rollout.Where{File: r.Origin.File, Line: r.Origin.Line, Rollout: r.ID}
		if e == nil {
			return rollout.Errorf(rollout.KindInput, where, "instance %q has several recorded outcomes and nothing tells which is this rollout's", r.Instance).
				WithFix("name rollouts by id in the rewards")
		}
		if first, used := rd.joined[e]; used {
			return rollout.Errorf(rollout.KindInput, where, "the outcome at %s was given to rollout %q already", e.Where, first).
				WithFix("name rollouts by id in the rewards")
		}
		rd.joined[e] = r.ID
		e.Apply(r, by)
		rd.report.Joined++
		joined = true
	}
	if !joined {
		rd.report.UnrewardedCount++
		if len(rd.report.Unrewarded) < maxListed {
			rd.report.Unrewarded = append(rd.report.Unrewarded, r.ID)
		}
	}
	return nil
}

// unmatched adds the outcomes that no rollout took to the report.
func (rd *Reader) unmatched() {
	told := map[*outcomes.Entry]bool{}
	for e := range rd.joined {
		told[e], told[e.Of] = true, true
	}
	for _, x := range rd.opt.Rewards {
		for _, e := range x.table.Entries {
			if told[e] {
				continue
			}
			rd.report.UnmatchedCount++
			if len(rd.report.Unmatched) < maxListed {
				rd.report.Unmatched = append(rd.report.Unmatched, e.Where.String()+": "+rd.withLikeID(e.Name()))
			}
		}
	}
	sort.Strings(rd.report.Unmatched)
}

// withLikeID returns name with a hint at a rollout without a reward whose id contains the
// name, or the reverse: often only a path or an extension differs.
func (rd *Reader) withLikeID(name string) string {
	for _, id := range rd.report.Unrewarded {
		if id == name {
			return fmt.Sprintf("%s (a rollout has this id, and none this instance or folder: name it by id)", name)
		}
		if short := min(len(id), len(name)); short >= alikeBytes && (strings.Contains(id, name) || strings.Contains(name, id)) {
			return fmt.Sprintf("%s (the rollout %q looks alike: name it so, or by its instance)", name, id)
		}
	}
	return name
}

// alikeBytes is the minimum length of a name for such a hint.
const alikeBytes = 4
