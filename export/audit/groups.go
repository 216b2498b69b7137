package audit

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/anyrows"
	"github.com/turnpack/turnpack/internal/col"
)

// endRollout checks the rows of the current rollout together.
func (a *auditor) endRollout() {
	rows := a.open
	a.open = nil
	if len(rows) == 0 {
		return
	}
	a.left = rows[0].Rollout
	whole := rows[0].Whole
	if s := rows[0].Sample; s != nil {
		whole = new(float64(s.RolloutMaskSum))
	}
	if whole != nil {
		n := 0
		for _, r := range rows {
			_, trained := count(len(r.IDs), r.Trained)
			n += trained
		}
		if float64(n) != *whole {
			a.report(rows[0], "torn-rollout", col.RolloutMaskSum, -1, 0, "the rows of rollout %q train %d tokens, %s says %g", rows[0].Rollout, n, col.RolloutMaskSum, *whole)
		}
	}
	for i, r := range rows {
		for _, p := range rows[:i] {
			a.trainedTwice(p, r)
		}
	}
}

// trainedTwice finds tokens that two rows of a rollout both train after the same prefix. Replies
// that part were sampled by two calls of that prefix, and their common beginning by both.
func (a *auditor) trainedTwice(p, r *anyrows.Row) {
	if apart(p, r) {
		return
	}
	same := 0
	for same < min(len(p.IDs), len(r.IDs)) && p.IDs[same] == r.IDs[same] {
		same++
	}
	if p.Trained(same) || r.Trained(same) {
		for same > 0 && p.Trained(same-1) && r.Trained(same-1) {
			same--
		}
	}
	if first, n := count(same, func(t int) bool { return p.Trained(t) && r.Trained(t) }); n > 0 {
		a.report(r, "trained-twice", col.LossMask, first, n, "%d tokens are trained after the same context in row %d too", n, p.Index)
	}
}

// apart reports whether two rows say that they train replies of different steps, and train no more
// replies than they say.
func apart(p, r *anyrows.Row) bool {
	for _, x := range []*anyrows.Row{p, r} {
		if x.Sample == nil || x.Sample.FirstStep < 0 || replies(x) > x.Sample.LastStep-x.Sample.FirstStep+1 {
			return false
		}
	}
	return p.Sample.LastStep < r.Sample.FirstStep || r.Sample.LastStep < p.Sample.FirstStep
}

// replies counts the runs of trained tokens.
func replies(r *anyrows.Row) int {
	_, n := count(len(r.IDs), func(t int) bool { return r.Trained(t) && (t == 0 || !r.Trained(t-1)) })
	return n
}

// finish applies the rules about groups and about all files together.
func (a *auditor) finish() {
	sizes := map[int]bool{}
	for _, id := range a.order {
		g := a.groups[id]
		n := len(g.rewards)
		sizes[n] = true
		where := Finding{File: g.file, Row: -1, Token: -1, Sample: id}
		if n == 1 {
			where.Rule, where.Text = "single-rollout", "one rollout"
			a.found.add(where)
			continue
		}
		var one float64
		first, spread := true, false
		for _, v := range g.rewards {
			if first {
				one, first = v, false
			}
			spread = spread || v != one
		}
		if !spread {
			where.Rule, where.Text = "zero-spread", fmt.Sprintf("%d rollouts with reward %g", n, one)
			a.found.add(where)
		} else if g.reversed() {
			where.Rule, where.Text = "advantage-sign", "the best rollouts have advantages below 0, the worst above"
			a.found.add(where)
		}
	}
	if len(sizes) > 1 {
		all := slices.Sorted(maps.Keys(sizes))
		a.found.add(Finding{Rule: "group-sizes", File: a.path, Row: -1, Token: -1, Text: fmt.Sprintf("from %d to %d rollouts", all[0], all[len(all)-1])})
	}
	if len(a.rewards) == 1 && a.out.Rows > 1 {
		a.found.add(Finding{Rule: "constant-reward", File: a.path, Row: -1, Token: -1, Text: fmt.Sprintf("every reward is %g", a.rewards[0])})
	}
}

// reversed reports whether the advantages of the best rollouts are all below 0 and those of the
// worst above, which no estimator that centres rewards produces. It returns false if a reward
// is not finite.
func (g *groupFacts) reversed() bool {
	best, worst := math.Inf(-1), math.Inf(1)
	for _, v := range g.rewards {
		best, worst = max(best, v), min(worst, v)
	}
	for id, v := range g.rewards {
		a, ok := g.advantages[id]
		if !ok || v-v != 0 || v == best && !(a < 0) || v == worst && !(a > 0) {
			return false
		}
	}
	return true
}

// sample checks a row of this module's schema against the schema's rules.
func (a *auditor) sample(r *anyrows.Row) {
	if a.schemaOK && r.Unreadable != nil {
		a.schema(r.Index, r.Unreadable)
	}
	if r.Sample == nil || !a.schemaOK {
		return
	}
	s := *r.Sample
	err := a.checker.Check(&s)
	if err == nil && a.columns != nil {
		if more := a.columns.Missing(export.ColumnsOf(&s)); len(more) > 0 {
			err = export.Refuse(&s, more[0], "columns", "name the file's columns in Options.Columns", "the row has this column, and %s of the file does not name it", col.Columns)
		}
	}
	if err != nil {
		a.schema(r.Index, err)
	}
}

// schema reports the first refusal in a file. The checker cannot be used after it.
func (a *auditor) schema(row int, err error) {
	a.schemaOK = false
	a.found.add(Finding{Rule: "schema", File: a.path, Row: row, Token: -1, Text: err.Error()})
}
