// Package rowsteps serves batches whose estimator compares agent steps. [Table] holds the
// values and advantages of a batch's steps. [Step] is the metadata of a row about a step that
// it trains, for trainers that take advantages by step.
package rowsteps

import (
	"encoding/json"

	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// Step is an agent step with trained tokens in a row.
type Step struct {
	Step int `json:"step"`
	// From and To are the range of its trained tokens, without To.
	From int `json:"from"`
	To   int `json:"to"`
	// Score is the judge's score, 0 if the step was deliberately not judged. Value is the
	// compared value, made of outcome and score.
	Score     float64 `json:"score"`
	Value     float64 `json:"value"`
	Advantage float64 `json:"advantage"`
}

// Of returns the steps of a row of r in order; values are the values of r's steps.
func Of(row *spool.Row, r *rollout.Rollout, values []reward.StepValue) []Step {
	turns := rollout.TurnsOf(r)
	at := map[int]int{}
	out := []Step{}
	row.Each(func(i, from, n int) {
		t := row.Turn[i]
		if row.Weight[i] <= 0 || t < 0 || int(t) >= len(turns) {
			return
		}
		step := turns[t].Step
		k, seen := at[step]
		if !seen {
			k = len(out)
			at[step] = k
			out = append(out, Step{Step: step, From: from, Advantage: float64(row.Credit[i])})
		}
		out[k].To = from + n
	})
	for _, v := range values {
		if k, ok := at[v.Step]; ok {
			out[k].Value = v.Value
		}
	}
	for _, s := range r.Steps {
		if k, ok := at[s.Step]; ok && s.Score != nil {
			out[k].Score = *s.Score
		}
	}
	return out
}

// Read returns the steps in a row's metadata, or nil if it has none.
func Read(metadata json.RawMessage) ([]Step, error) {
	var m struct {
		Turnpack struct{ Steps []Step }
	}
	if len(metadata) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return nil, err
	}
	return m.Turnpack.Steps, nil
}
