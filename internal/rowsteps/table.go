package rowsteps

import (
	"math"

	"github.com/turnpack/turnpack/reward"
)

// Table holds the step values of a batch, by rollout, and after Finish their advantages. The
// zero value is ready to use. After Finish it is safe for concurrent use.
type Table struct {
	Groups []reward.StepGroup // rollouts in the order they were added

	of map[string]map[int]reward.Advantage
}

// Add adds the values of the next rollout of a group. key is the group's key.
func (t *Table) Add(group int, key string, r reward.RolloutSteps) {
	for len(t.Groups) <= group {
		t.Groups = append(t.Groups, reward.StepGroup{})
	}
	t.Groups[group].Key = key
	t.Groups[group].Rollouts = append(t.Groups[group].Rollouts, r)
}

// Finish computes the advantages; excluded returns why a rollout is left out, or "" if it is
// not.
func (t *Table) Finish(e reward.Estimator, excluded func(group, rollout int) string) error {
	for i := range t.Groups {
		for j := range t.Groups[i].Rollouts {
			t.Groups[i].Rollouts[j].Excluded = excluded(i, j)
		}
	}
	all, _, err := reward.StepAdvantages(t.Groups, e)
	if err != nil {
		return err
	}
	t.of = map[string]map[int]reward.Advantage{}
	for i, g := range t.Groups {
		for j, r := range g.Rollouts {
			own := make(map[int]reward.Advantage, len(r.Steps))
			for k, s := range r.Steps {
				own[s.Step] = all[i][j][k]
			}
			t.of[r.ID] = own
		}
	}
	return nil
}

// Of returns the advantages of a rollout's steps, or the reason why none has one.
func (t *Table) Of(rollout string) (steps map[int]reward.Advantage, without string) {
	without, lowest := reward.ExcludedNoSteps, math.MaxInt
	for step, a := range t.of[rollout] {
		if a.Dropped == "" {
			return t.of[rollout], ""
		}
		if step < lowest {
			without, lowest = a.Dropped, step
		}
	}
	return nil, without
}
