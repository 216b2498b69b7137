package prm

import (
	"maps"
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Agreement measures how far the votes on the same step agree. A majority that stops early requests
// more votes where they differ, which lowers all figures: compare judges without early stopping.
type Agreement struct {
	Steps     int `json:"steps"`     // steps with at least two valid votes
	Votes     int `json:"votes"`     // their valid votes
	Unanimous int `json:"unanimous"` // steps whose votes are all equal
	// Kappa is Fleiss' κ over the vote values, with the mean over steps of the pairwise agreement, so
	// that steps may have different numbers of votes (Fleiss 1971; Conger 1980 for unequal numbers). 1
	// is full agreement, 0 is agreement by chance. It is nil without steps, or if every vote has the
	// same value, so that chance explains everything.
	Kappa *float64 `json:"kappa"`
	// The spread of a step is max − min of its votes; these are its mean over steps and its maximum.
	MeanSpread float64 `json:"mean_spread"`
	MaxSpread  float64 `json:"max_spread"`
	// Failed and Unparsed count votes without a score, over all steps: those without an answer, and
	// answers without a verdict, of which the text is empty if the judge only reasoned or refused.
	Failed   int `json:"failed"`
	Unparsed int `json:"unparsed"`
	// NotComputed counts the steps without a score, except skipped steps.
	NotComputed int `json:"not_computed"`
}

// Tally computes the Agreement over many rollouts, in constant memory per distinct vote value. The
// zero value is ready for use; it is not safe for concurrent use.
type Tally struct {
	a       Agreement
	pairs   float64 // Σ over steps of the pairwise agreement
	spread  float64
	byValue map[float64]int
}

// Add adds the step scores of a rollout.
func (t *Tally) Add(scores []rollout.StepScore) {
	for _, s := range scores {
		if s.Score == nil && !Skipped(s) {
			t.a.NotComputed++
		}
		for _, v := range s.Votes {
			switch {
			case v.Score != nil:
			case v.Text == "" && v.Tokens == 0:
				t.a.Failed++
			default:
				t.a.Unparsed++
			}
		}
		t.step(s.Votes)
	}
}

func (t *Tally) step(votes []rollout.Vote) {
	c := count(votes)
	if c.valid < 2 {
		return
	}
	if t.byValue == nil {
		t.byValue = map[float64]int{}
	}
	agreeing := 0
	for _, b := range c.ballots {
		agreeing += b.n * (b.n - 1)
		t.byValue[b.value] += b.n
	}
	t.a.Steps++
	t.a.Votes += c.valid
	t.pairs += float64(agreeing) / float64(c.valid*(c.valid-1))
	spread := c.ballots[len(c.ballots)-1].value - c.ballots[0].value
	t.spread += spread
	t.a.MaxSpread = max(t.a.MaxSpread, spread)
	if len(c.ballots) == 1 {
		t.a.Unanimous++
	}
}

// Agreement returns the statistics so far.
func (t *Tally) Agreement() Agreement {
	a := t.a
	if a.Steps == 0 {
		return a
	}
	a.MeanSpread = t.spread / float64(a.Steps)
	chance := 0.0
	for _, v := range slices.Sorted(maps.Keys(t.byValue)) {
		share := float64(t.byValue[v]) / float64(a.Votes)
		chance += share * share
	}
	if chance < 1 {
		observed := t.pairs / float64(a.Steps)
		kappa := (observed - chance) / (1 - chance)
		a.Kappa = &kappa
	}
	return a
}
