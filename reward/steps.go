package reward

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// StepValue is the value earned by one agent step.
type StepValue struct {
	Step  int // 0-based agent step
	Value float64
}

// skippedPrefix is the prefix of the reason of a step left unjudged on purpose, as package prm writes it.
const skippedPrefix = "skipped: "

// StepsOf returns the value outcome + coef·score of each scored step of r; a coef of 0 counts as 1.
// Steps without a score are left out, since a failed judge says nothing about them. Steps that were
// skipped on purpose (their reason begins with "skipped: ") have the outcome alone as value.
func StepsOf(r *rollout.Rollout, outcome, coef float64) []StepValue {
	if r == nil {
		return nil
	}
	coef = cmp.Or(coef, 1)
	var out []StepValue
	for _, x := range r.Steps {
		switch {
		case x.Score != nil:
			out = append(out, StepValue{Step: x.Step, Value: outcome + coef**x.Score})
		case strings.HasPrefix(x.Reason, skippedPrefix):
			out = append(out, StepValue{Step: x.Step, Value: outcome})
		}
	}
	return out
}

// RolloutSteps holds the step values of one rollout.
type RolloutSteps struct {
	ID       string
	Excluded string // as in RolloutReward
	Steps    []StepValue
}

// StepGroup holds the step values of one group of rollouts.
type StepGroup struct {
	Key      string
	Rollouts []RolloutSteps
}

// StepAdvantages returns the advantage of each step, compared with the steps of the same index in the
// other rollouts of its group. The buckets of comparison are keyed by (group, step), so a missing step
// shifts nothing. The result has the shape of groups, with one advantage per step value. e must group
// by key; the preset openclaw_step_wise is the estimator of OpenClaw-RL.
func StepAdvantages(groups []StepGroup, e Estimator) ([][][]Advantage, Report, error) {
	if e.Grouping != groupByKey {
		return nil, Report{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Grouping"},
			"step advantages are compared within a key, found the grouping %q", e.Grouping).WithFix("leave Grouping empty")
	}
	// Each step becomes a group entry of its own, so that Advantages sees the buckets in the order of
	// their first step.
	var flat []GroupRewards
	for _, g := range groups {
		prefix := strconv.Quote(g.Key) + "/"
		for _, r := range g.Rollouts {
			for _, s := range r.Steps {
				flat = append(flat, GroupRewards{prefix + strconv.Itoa(s.Step), []RolloutReward{{
					ID: r.ID, Reward: s.Value, Excluded: r.Excluded,
				}}})
			}
		}
	}
	values, report, err := Advantages(flat, e)
	if err != nil {
		return nil, Report{}, err
	}
	out := make([][][]Advantage, len(groups))
	at := 0
	for i, g := range groups {
		out[i] = make([][]Advantage, len(g.Rollouts))
		for j, r := range g.Rollouts {
			out[i][j] = make([]Advantage, len(r.Steps))
			for k := range r.Steps {
				out[i][j][k] = values[at][0]
				at++
			}
		}
	}
	return out, report, nil
}

// CreditSteps returns seq, a sequence of r, with the Credit of each trained token set to the advantage
// of the agent step whose turn sampled it. Tokens of steps that are dropped, or missing in advantages,
// get weight 0 and credit 0, since nothing is known about them; leftOut counts those tokens.
func CreditSteps(seq rollout.Sequence, r *rollout.Rollout, advantages map[int]Advantage) (out rollout.Sequence, leftOut int, err error) {
	if r == nil {
		return seq, 0, zero.Rollout()
	}
	if err := errors.Join(aligned(&seq, "Weight", len(seq.Weight)), aligned(&seq, "Turn", len(seq.Turn))); err != nil && seq.Weight != nil {
		return seq, 0, err
	}
	turns := rollout.TurnsOf(r)
	weight := append([]float32(nil), seq.Weight...)
	for i, w := range weight {
		if w <= 0 {
			continue
		}
		t := seq.Turn[i]
		if t < 0 || int(t) >= len(turns) {
			return seq, 0, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: seq.Rollout, Token: rollout.At(i), Field: "Turn"},
				"a trained token belongs to turn %d, and the rollout has %d turns", t, len(turns))
		}
		if a, ok := advantages[turns[t].Step]; !ok || a.Dropped != "" {
			weight[i] = 0
			leftOut++
		}
	}
	if leftOut > 0 {
		if seq, err = seq.WithWeight(weight); err != nil {
			return seq, 0, err
		}
	}
	out, err = credit(seq, func(token int) float64 {
		return advantages[turns[seq.Turn[token]].Step].Value
	})
	return out, leftOut, err
}
