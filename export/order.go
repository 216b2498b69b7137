package export

import (
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/rollout"
)

// order checks the rules across rows: groups are contiguous, rollouts are contiguous within
// their group, rows are numbered from 0, is_last and rollout_mask_sum are exact. It keeps the
// names of all groups and rollouts in memory, with a few bytes for each.
type order struct {
	groups, rollouts keys.Keys
	indices          map[int]string // rollout_index → rollout id, for the current group

	last rollout.Sample // last row seen, without its per-token columns
	sum  int64          // trained tokens of the current rollout so far
}

// begins reports whether s begins a group and a rollout.
func (o *order) begins(s *rollout.Sample) (group, rollout bool) {
	return o.last.Group != s.Group, o.last.Rollout != s.Rollout
}

// add checks s against the rows before it.
func (o *order) add(s *rollout.Sample, trained int) error {
	if o.last.Rollout != s.Rollout {
		if err := o.end(); err != nil {
			return err
		}
		if err := o.begin(s); err != nil {
			return err
		}
	} else if err := o.next(s); err != nil {
		return err
	}
	o.sum += int64(trained)
	o.last = *s
	o.last.Sequence = rollout.Sequence{Identity: s.Identity}
	return nil
}

func (o *order) begin(s *rollout.Sample) error {
	if o.last.Group != s.Group {
		if _, added := o.groups.Add(s.Group); !added {
			return refuse(s, col.GroupID, ruleOrder, -1, "write the rollouts of a group one after the other", "group %q was closed by another group before", s.Group)
		}
		o.indices = map[int]string{}
	}
	if _, added := o.rollouts.Add(s.Rollout); !added {
		return refuse(s, col.RolloutID, ruleOrder, -1, "write the rows of a rollout one after the other and give rollouts unique ids",
			"rollout %q was closed by another rollout before", s.Rollout)
	}
	if other, taken := o.indices[s.RolloutIndex]; taken {
		return refuse(s, col.RolloutIndex, ruleOrder, -1, "number the rollouts of a group from 0", "index %d belongs to rollout %q of the same group", s.RolloutIndex, other)
	}
	o.indices[s.RolloutIndex] = s.Rollout
	o.sum = 0
	if s.SampleIndex != 0 {
		return refuse(s, col.SampleIndex, ruleOrder, -1, "number the rows that remain from 0 (rollout.FinishRows does)", "the first row of the rollout has index %d", s.SampleIndex)
	}
	return nil
}

func (o *order) next(s *rollout.Sample) error {
	p := &o.last
	const fix = "the rows of a rollout share it; rollout.FinishRows sets what depends on the others"
	switch {
	case s.Group != p.Group:
		return refuse(s, col.GroupID, ruleOrder, -1, fix, "row %q of the same rollout is in group %q", p.ID, p.Group)
	case s.RolloutIndex != p.RolloutIndex:
		return refuse(s, col.RolloutIndex, ruleOrder, -1, fix, "it is %d, in row %q %d", s.RolloutIndex, p.ID, p.RolloutIndex)
	case s.SampleIndex != p.SampleIndex+1:
		return refuse(s, col.SampleIndex, ruleOrder, -1, fix, "it is %d after %d", s.SampleIndex, p.SampleIndex)
	case p.IsLast:
		return refuse(s, col.IsLast, ruleOrder, -1, fix, "row %q before it already says it is the last of the rollout", p.ID)
	case s.RolloutMaskSum != p.RolloutMaskSum:
		return refuse(s, col.RolloutMaskSum, ruleOrder, -1, fix, "it is %d, in row %q %d", s.RolloutMaskSum, p.ID, p.RolloutMaskSum)
	case float32(s.Reward) != float32(p.Reward):
		return refuse(s, col.Reward, ruleOrder, -1, fix, "it is %g, in row %q %g", s.Reward, p.ID, p.Reward)
	case float32(s.OutcomeReward) != float32(p.OutcomeReward):
		return refuse(s, col.OutcomeReward, ruleOrder, -1, fix, "it is %g, in row %q %g", s.OutcomeReward, p.ID, p.OutcomeReward)
	}
	return nil
}

// end checks the current rollout, if any.
func (o *order) end() error {
	p := &o.last
	if p.Rollout == "" {
		return nil
	}
	if !p.IsLast {
		return refuse(p, col.IsLast, ruleOrder, -1, "mark exactly the last row of each rollout (rollout.FinishRows does)", "the rollout ends with it and it is not marked last")
	}
	if p.RolloutMaskSum != o.sum {
		return refuse(p, col.RolloutMaskSum, ruleOrder, -1, "count the trained tokens over the rows that are written (rollout.FinishRows does)",
			"it is %d, the rows of the rollout train %d tokens", p.RolloutMaskSum, o.sum)
	}
	return nil
}
