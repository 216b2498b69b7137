package overview

import (
	"cmp"
	"math"
	"slices"

	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// Facts are what is looked at of one rollout.
type Facts struct {
	Group  int // any number that the rollouts of a group share
	Status rollout.Status
	Solved *bool    `json:",omitempty"` // nil = nothing says
	Reward *float64 `json:",omitempty"` // nil = it has none
	Steps  int      // agent steps
	// Tokens and Trained are of all its rows; Rows is 0 where it gave none.
	Rows            int
	Tokens, Trained int64
	Advantage       *float64 `json:",omitempty"` // nil = none, or no row
	Judged          bool     `json:",omitempty"` // a step has a score
	// NoTemperature says that a turn does not record what it was sampled at.
	NoTemperature bool `json:",omitempty"`
}

// FactsOf is what is looked at of a scored rollout before it has rows.
func FactsOf(group int, r *rollout.Rollout, got rollout.Reward) Facts {
	if r == nil {
		return Facts{Group: group}
	}
	o := Facts{Group: group, Status: r.Status, Solved: shaping.Solved(got), Judged: got.Step != nil}
	if got.Excluded == "" {
		o.Reward = &got.Total
	}
	for i, t := range rollout.TurnsOf(r) {
		o.Steps = max(o.Steps, t.Step+1)
		o.NoTemperature = o.NoTemperature || r.TemperatureAt(i) == nil
	}
	return o
}

// Distribution describes numbers. Quantiles are exact up to 65,536 numbers and of an
// even sample of them beyond.
type Distribution struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"` // with n − 1, 0 of one number
	Min    float64 `json:"min"`
	P10    float64 `json:"p10"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Max    float64 `json:"max"`
}

// Solves counts the groups of Of valid rollouts of which Solved solved their task.
type Solves struct {
	Solved int `json:"solved"`
	Of     int `json:"of"`
	Groups int `json:"groups"`
}

// Batch describes a batch.
type Batch struct {
	Rollouts  int `json:"rollouts"`
	Graded    int `json:"graded"` // rollouts of which it is known whether they solved their task
	Resolved  int `json:"resolved"`
	Truncated int `json:"truncated"`
	// Judged counts rollouts of which a step has a score, NoTemperature those with rows
	// of which a turn does not record the temperature it was sampled at.
	Judged        int `json:"judged"`
	NoTemperature int `json:"without_temperature"`
	// Solves is the histogram of groups, by Of and Solved; groups without a graded
	// rollout are not in it.
	Solves    []Solves     `json:"solves,omitempty"`
	Reward    Distribution `json:"reward"`
	Steps     Distribution `json:"steps"`
	Rows      Distribution `json:"rows"`   // for each rollout that gave any
	Tokens    Distribution `json:"tokens"` // of all rows, the same rollouts
	Trained   Distribution `json:"trained"`
	Advantage Distribution `json:"advantage"`
}

// ResolveRate is the share of graded rollouts that solved their task, 0 of none.
func (b *Batch) ResolveRate() float64 { return part(b.Resolved, b.Graded) }

// TruncatedShare is the share of rollouts that a limit cut off.
func (b *Batch) TruncatedShare() float64 { return part(b.Truncated, b.Rollouts) }

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// Tally collects a Batch. The zero value is ready; it is not safe for concurrent use.
type Tally struct {
	rollouts, graded, resolved, truncated, judged, cold   int
	groups                                                map[int]solves
	reward, steps, rows, tokens, trained, advantageValues sample
}

// solves counts the graded rollouts of a group, of which there may be very many.
type solves struct{ solved, of int32 }

// Add takes a rollout.
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
		t.cold++
	}
	t.rows.add(float64(r.Rows))
	t.tokens.add(float64(r.Tokens))
	t.trained.add(float64(r.Trained))
	if r.Advantage != nil {
		t.advantageValues.add(*r.Advantage)
	}
}

// Batch describes what was added so far.
func (t *Tally) Batch() Batch {
	b := Batch{Rollouts: t.rollouts, Graded: t.graded, Resolved: t.resolved, Truncated: t.truncated, Judged: t.judged, NoTemperature: t.cold,
		Reward: t.reward.distribution(), Steps: t.steps.distribution(), Rows: t.rows.distribution(),
		Tokens: t.tokens.distribution(), Trained: t.trained.distribution(), Advantage: t.advantageValues.distribution()}
	counts := map[solves]int{}
	for _, g := range t.groups {
		counts[g]++
	}
	for k, n := range counts {
		b.Solves = append(b.Solves, Solves{Solved: int(k.solved), Of: int(k.of), Groups: n})
	}
	slices.SortFunc(b.Solves, func(x, y Solves) int { return cmp.Or(cmp.Compare(x.Of, y.Of), cmp.Compare(x.Solved, y.Solved)) })
	return b
}

// sampleSize is how many numbers a sample keeps.
const sampleSize = 1 << 16

// sample keeps every number, and beyond sampleSize every second, fourth … of them.
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

func (s *sample) distribution() Distribution {
	if s.n == 0 {
		return Distribution{}
	}
	d := Distribution{N: s.n, Mean: s.mean, Min: s.low, Max: s.high}
	if s.n > 1 {
		d.Std = math.Sqrt(s.squares / float64(s.n-1))
	}
	sorted := slices.Sorted(slices.Values(s.kept))
	at := func(q float64) float64 { return sorted[int(math.Round(q*float64(len(sorted)-1)))] }
	d.P10, d.Median, d.P90 = at(0.1), at(0.5), at(0.9)
	return d
}
