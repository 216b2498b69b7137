package pivot

import (
	"cmp"
	"math"
	"sort"

	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// Candidate is a turn of a demonstration that can serve as a pivot: the policy gets the messages
// before it as prompt and is scored against its action.
type Candidate struct {
	Rollout string // rollout id
	Turn    int    // 0-based index among the assistant messages of the rollout
	Message int    // index of that message; the prompt is Messages[:Message]
	Action  Action
	// Protocol names the form of the calls in the message's text, "" for native calls.
	Protocol string
}

// Candidates returns, in order, the assistant messages of r that call a tool, natively or in their
// text (see WithTextCalls), or all assistant messages with content if withMessages is set. Exit
// messages and scripted messages are not steps of the demonstrator and are left out.
func Candidates(r *rollout.Rollout, withMessages bool) []Candidate {
	if r == nil {
		return nil
	}
	var out []Candidate
	turn := 0
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != rollout.RoleAssistant {
			continue
		}
		at := turn
		turn++
		if m.Sampled == rollout.SampledExit || m.Sampled == rollout.SampledScripted {
			continue
		}
		action, _, protocol := textAction(m)
		if len(action.Calls) > 0 || withMessages && action.Kind == message {
			out = append(out, Candidate{r.ID, at, i, action, protocol})
		}
	}
	return out
}

// Trial is a candidate with the rewards of the answers sampled for it.
type Trial struct {
	Candidate
	Rewards []float64 // one per sampled answer
}

// Selection defines which pivots are kept. The zero value keeps every trial whose rewards differ.
type Selection struct {
	// MinSamples is the least number of rewards; 0 means 2.
	MinSamples int
	// MinVariance is an exclusive bound on the population variance; the default 0
	// drops turns that every answer gets right or every answer gets wrong, up to
	// rounding.
	MinVariance float64
	// MaxMean, if positive, drops turns with a mean reward above it as too easy.
	MaxMean float64
	// PerRollout and Total limit the number of turns, keeping those of largest variance; 0 means no
	// limit.
	PerRollout int
	Total      int
}

func (s Selection) validate() error {
	var f faults.List
	f.Count("MinSamples", s.MinSamples)
	f.Amount("MinVariance", s.MinVariance)
	f.Amount("MaxMean", s.MaxMean)
	f.Count("PerRollout", s.PerRollout)
	f.Count("Total", s.Total)
	return f.Err()
}

// Choice is the decision on one trial, with its statistics.
type Choice struct {
	Mean, Variance float64 // population variance
	Kept           bool
	// Reason is why the trial was dropped, "" if it was kept: too_few_samples, no_variance, too_easy,
	// rollout_limit or total_limit.
	Reason string
}

// spreadTolerance is the relative spread below which rewards count as equal.
const spreadTolerance = 1e-9

// Select returns the decision on every trial, in the order of trials. Rewards that are not finite are
// an error of kind input.
func (s Selection) Select(trials []Trial) ([]Choice, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	least := cmp.Or(s.MinSamples, 2)
	choices := make([]Choice, len(trials))
	var kept []int
	for i, t := range trials {
		c := &choices[i]
		for k, r := range t.Rewards {
			if math.IsNaN(r) || math.IsInf(r, 0) {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: t.Rollout, Turn: rollout.At(t.Turn)}, "reward %d is %v", k, r)
			}
		}
		c.Mean, c.Variance = moments(t.Rewards)
		switch {
		case len(t.Rewards) < least:
			c.Reason = "too_few_samples"
		case !(c.Variance > s.MinVariance):
			c.Reason = "no_variance"
		case s.MaxMean > 0 && c.Mean > s.MaxMean:
			c.Reason = "too_easy"
		default:
			kept = append(kept, i)
		}
	}
	sort.SliceStable(kept, func(a, b int) bool { return choices[kept[a]].Variance > choices[kept[b]].Variance })
	perRollout := map[string]int{}
	total := 0
	for _, i := range kept {
		id := trials[i].Rollout
		switch {
		case s.PerRollout > 0 && perRollout[id] >= s.PerRollout:
			choices[i].Reason = "rollout_limit"
		case s.Total > 0 && total >= s.Total:
			choices[i].Reason = "total_limit"
		default:
			choices[i].Kept = true
			perRollout[id]++
			total++
		}
	}
	return choices, nil
}

// moments returns the mean and the population variance, which is 0 if all rewards are equal up to
// rounding.
func moments(rewards []float64) (mean, variance float64) {
	if len(rewards) == 0 {
		return 0, 0
	}
	low, high := rewards[0], rewards[0]
	for _, r := range rewards {
		mean += r
		low, high = min(low, r), max(high, r)
	}
	// One division: a mean of 3/5 must equal a bound of 0.6.
	mean /= float64(len(rewards))
	if high-low <= spreadTolerance*max(1, math.Abs(low), math.Abs(high)) {
		return mean, 0
	}
	for _, r := range rewards {
		variance += (r - mean) * (r - mean) / float64(len(rewards))
	}
	return mean, variance
}
