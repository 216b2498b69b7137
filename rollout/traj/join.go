package traj

import (
	"cmp"
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// join gives a rollout the outcome recorded for it elsewhere: by rollout id,
// then by the folder of its file, then by instance. An outcome named by instance
// only belongs to one attempt, so a second rollout of that instance is a
// failure, not a copy.
func (rd *Reader) join(r *rollout.Rollout) error {
	joined := len(rd.opt.Rewards) == 0
	for _, x := range rd.opt.Rewards {
		e, by := x.find(r)
		if by == "" {
			continue
		}
		where := rollout.Where{File: r.Origin.File, Line: r.Origin.Line, Rollout: r.ID}
		if e == nil {
			return rollout.Errorf(rollout.KindInput, where, "instance %q has several recorded outcomes and nothing tells which is this rollout's", r.Instance).
				WithFix("name rollouts by id in the rewards")
		}
		if first, used := rd.joined[e]; used {
			return rollout.Errorf(rollout.KindInput, where, "the outcome at %s was given to rollout %q already", e.where, first).
				WithFix("name rollouts by id in the rewards")
		}
		rd.joined[e] = r.ID
		e.apply(r, by)
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

// find returns the outcome and the key that matched, "" when none did; the
// outcome is nil when the key does not tell which.
func (x *Rewards) find(r *rollout.Rollout) (e *entry, by string) {
	if e, ok := x.byID[r.ID]; ok {
		return e, "id"
	}
	if e, ok := x.byRun[filepath.Base(filepath.Dir(r.Origin.File))]; ok && (e.instance == "" || e.instance == r.Instance) {
		return e, "run_dir"
	}
	if r.Instance == "" {
		return nil, ""
	}
	if e, ok := x.byID[r.Instance]; ok && e.instance == "" {
		return e, "instance" // a table whose only key is called id
	}
	e, ok := x.byInstance[r.Instance]
	if !ok || e != nil && e.id != "" {
		return nil, "" // the row is about a rollout of its own id
	}
	return e, "instance"
}

// apply gives r the outcome. One that repeats part of what the dump says adds to
// it; any other replaces all of it, for a verdict and a number of two gradings are
// no outcome.
func (e *entry) apply(r *rollout.Rollout, by string) {
	o := &r.Outcome
	replaced := e.replaces(o)
	if replaced {
		*o = rollout.Outcome{Submission: o.Submission}
	}
	if e.resolved != nil {
		b := *e.resolved
		o.Resolved = &b
		o.Verdict = rollout.VerdictUnresolved
		if b {
			o.Verdict = rollout.VerdictResolved
		}
	}
	if e.reward != nil {
		f := *e.reward
		o.Reward = &f
	}
	if e.verdict != rollout.VerdictUnknown {
		o.Verdict = e.verdict
	}
	if e.reason != "" {
		o.Reason = e.reason
	}
	n := rollout.Note{Code: "joined", Text: fmt.Sprintf("the outcome comes from %s, by %s", e.where, by)}
	if replaced {
		n = rollout.Note{Code: "outcome_replaced", Text: fmt.Sprintf("the outcome at %s, joined by %s, differs from the dump's and replaces it", e.where, by)}
	}
	r.Notes = append(r.Notes, n)
}

// replaces reports whether e and o both tell of success and nothing of it is told
// by both alike.
func (e *entry) replaces(o *rollout.Outcome) bool {
	if e.resolved == nil && e.reward == nil && e.verdict == rollout.VerdictUnknown ||
		o.Resolved == nil && o.Reward == nil && o.Verdict == rollout.VerdictUnknown {
		return false
	}
	same, other := false, false
	compare := func(both, equal bool) { same, other = same || both && equal, other || both && !equal }
	compare(e.resolved != nil && o.Resolved != nil, e.resolved != nil && o.Resolved != nil && *e.resolved == *o.Resolved)
	compare(e.reward != nil && o.Reward != nil, e.reward != nil && o.Reward != nil && *e.reward == *o.Reward)
	// A verdict beside a truth value says why.
	compare(e.resolved == nil && e.verdict != rollout.VerdictUnknown && o.Verdict != rollout.VerdictUnknown, e.verdict == o.Verdict)
	return other || !same
}

// unmatched lists the outcomes that no rollout took.
func (rd *Reader) unmatched() {
	for _, x := range rd.opt.Rewards {
		for _, e := range x.entries {
			if _, used := rd.joined[e]; used {
				continue
			}
			rd.report.UnmatchedCount++
			if len(rd.report.Unmatched) < maxListed {
				rd.report.Unmatched = append(rd.report.Unmatched, e.where.String()+": "+rd.alike(cmp.Or(e.id, e.run, e.instance)))
			}
		}
	}
	sort.Strings(rd.report.Unmatched)
}

// alike adds to the name of a reward the rollout without one whose id holds the
// name, or is held by it: often a path or an extension is all that differs.
func (rd *Reader) alike(name string) string {
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

// alikeBytes is the shortest name that tells anything by standing in another.
const alikeBytes = 4
