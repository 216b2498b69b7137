// Package tally computes the overview of a batch: [Tally.Add] adds one rollout at a time,
// [Tally.Batch] returns the overview so far.
package tally

import (
	"cmp"
	"math"
	"slices"

	"github.com/turnpack/turnpack/internal/shaped"
	"github.com/turnpack/turnpack/reward/overview"
	"github.com/turnpack/turnpack/rollout"
)

// Facts holds the data of one rollout that the overview uses.
type Facts struct {
	Group  int // any number that the rollouts of a group share
	Status rollout.Status
	Solved *bool    `json:",omitempty"` // nil = unknown
	Reward *float64 `json:",omitempty"` // nil = no reward
	Steps  int      // agent steps
	// Tokens and Trained count over all its rows; Rows is 0 if it gave none.
	Rows            int
	Tokens, Trained int64
	Advantage       *float64 `json:",omitempty"` // nil = none, or no row
	Judged          bool     `json:",omitempty"` // a step has a score
	// NoTemperature is true if a turn does not record its sampling temperature.
	NoTemperature bool `json:",omitempty"`
}

// FactsOf returns the facts of a scored rollout that do not depend on its rows.
func FactsOf(group int, r *rollout.Rollout, got rollout.Reward) Facts {
	if r == nil {
		return Facts{Group: group}
	}
	o := Facts{Group: group, Status: r.Status, Solved: shaped.Solved(got), Judged: got.Step != nil}
	if got.Excluded == "" {
		o.Reward = &got.Total
	}
	for i, t := range rollout.TurnsOf(r) {
		o.Steps = max(o.Steps, t.Step+1)
		o.NoTemperature = o.NoTemperature || r.TemperatureAt(i) == nil
	}
	return o
}

// Tally computes an overview.Batch. The zero value is ready for use; it is not safe for concurrent
// use.
type Tally struct {
	rollouts, graded, resolved, truncated, judged, withoutTemperature int
	groups                                                            map[int]solves
	reward, steps, rows, tokens, trained, advantageValues             sample
}

// solves counts the graded rollouts of a group; its small size matters for many groups.
type solves struct{ solved, of int32 }

// Add adds a rollout.
func (t *Tally) Add(r Facts) {
	t.rollouts++
	if r.Status == rollout.StatusTruncated {
		t.truncated++
	}
	if r.Judged {
		t.judged++
	}
	if r.Solved != nil {
		t.graded++
		if t.groups == nil {
			t.groups = map[int]solves{}
		}
		g := t.groups[r.Group]
		g.of++
		if *r.Solved {
			t.resolved++
			g.solved++
		}
		t.groups[r.Group] = g
	}
	if r.Reward != nil {
		t.reward.add(*r.Reward)
	}
	t.steps.add(float64(r.Steps))
	if r.Rows == 0 {
		return
	}
	if r.NoTemperature {
		t.withoutTemperature++
	}
	t.rows.add(float64(r.Rows))
	t.tokens.add(float64(r.Tokens))
	t.trained.add(float64(r.Trained))
	if r.Advantage != nil {
		t.advantageValues.add(*r.Advantage)
	}
}

// Batch returns the overview of the rollouts added so far.
func (t *Tally) Batch() overview.Batch {
	b := overview.Batch{Rollouts: t.rollouts, Graded: t.graded, Resolved: t.resolved, Truncated: t.truncated, Judged: t.judged, NoTemperature: t.withoutTemperature,
		Reward: t.reward.distribution(), Steps: t.steps.distribution(), Rows: t.rows.distribution(),
		Tokens: t.tokens.distribution(), Trained: t.trained.distribution(), Advantage: t.advantageValues.distribution()}
	counts := map[solves]int{}
	for _, g := range t.groups {
		counts[g]++
	}
	for k, n := range counts {
		b.Solves = append(b.Solves, overview.Solves{Solved: int(k.solved), Of: int(k.of), Groups: n})
	}
	slices.SortFunc(b.Solves, func(x, y overview.Solves) int {
		return cmp.Or(cmp.Compare(x.Of, y.Of), cmp.Compare(x.Solved, y.Solved))
	})
	return b
}

// sampleSize is the maximum number of values that a sample keeps.
const sampleSize = 1 << 16

// sample keeps every value, and beyond sampleSize every second, fourth … value.
type sample struct {
	n              int
	mean, squares  float64 // Welford
	low, high      float64
	kept           []float64
	every, skipped int
}

func (s *sample) add(x float64) {
	if s.n == 0 {
		s.low, s.high, s.every = x, x, 1
	}
	s.n++
	d := x - s.mean
	s.mean += d / float64(s.n)
	s.squares += d * (x - s.mean)
	s.low, s.high = min(s.low, x), max(s.high, x)
	if s.skipped++; s.skipped < s.every {
		return
	}
	s.skipped = 0
	if s.kept = append(s.kept, x); len(s.kept) == sampleSize {
		for i := range sampleSize / 2 {
			s.kept[i] = s.kept[2*i+1]
		}
		s.kept = s.kept[:sampleSize/2]
		s.every *= 2
	}
}

func (s *sample) distribution() overview.Distribution {
	if s.n == 0 {
		return overview.Distribution{}
	}
	d := overview.Distribution{N: s.n, Mean: s.mean, Min: s.low, Max: s.high}
	if s.n > 1 {
		d.Std = math.Sqrt(s.squares / float64(s.n-1))
	}
	sorted := slices.Sorted(slices.Values(s.kept))
	at := func(q float64) float64 { // between two values in proportion, as numpy and pandas do
		below, part := math.Modf(q * float64(len(sorted)-1))
		low, high := sorted[int(below)], sorted[min(int(below)+1, len(sorted)-1)]
		return low + part*(high-low)
	}
	d.P10, d.Median, d.P90 = at(0.1), at(0.5), at(0.9)
	return d
}
