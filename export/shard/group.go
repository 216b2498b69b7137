package shard

import (
	"fmt"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/col"
	"github.com/turnpack/turnpack/rollout"
)

// EndStep ends the current shard. When it returns, the shard is durable, readable and in the
// progress file. The next row starts the next training step, which may reuse group ids but not
// rollout ids.
func (s *Set) EndStep() error {
	switch {
	case s.lock == nil:
		return zeroSet()
	case s.err == nil && s.done:
		return export.ErrClosed
	case s.err == nil:
		s.err = s.finish()
		s.step++
		s.group, s.rollout = "", ""
	}
	return s.err
}

// unique refuses a group or rollout that was already in an earlier shard; within one shard
// export.Writer does so.
func (s *Set) unique(row *rollout.Sample, newGroup bool) error {
	if newGroup {
		if err := s.first("g", row.Group, row, col.GroupID, "write the rollouts of a group one after the other, or end the step between them (EndStep)"); err != nil {
			return err
		}
		s.group = row.Group
	}
	if s.rollout != row.Rollout {
		if err := s.first("r", row.Rollout, row, col.RolloutID, "write the rows of a rollout one after the other and give rollouts unique ids"); err != nil {
			return err
		}
		s.rollout = row.Rollout
	}
	return nil
}

func (s *Set) first(what, id string, row *rollout.Sample, column, fix string) error {
	if !s.seen.Add(s.key(what, id), struct{}{}) {
		return export.Refuse(row, column, "order", fix, "%q was closed before", id)
	}
	return nil
}

// key returns the key of a rollout, unique in the set, or of a group, unique in the step.
func (s *Set) key(what, id string) string {
	if what == "g" && s.step > 0 {
		what = fmt.Sprint("g", s.step, ":")
	}
	return what + id
}

// sameColumns takes the optional columns of the set from its first row, unless the options name
// them, and then refuses rows with more.
func (s *Set) sameColumns(row *rollout.Sample) error {
	if s.opts.Maker != nil {
		return nil // the maker knows its columns
	}
	has := export.ColumnsOf(row)
	has.Weights = has.Weights || s.opts.Export.Weighted
	if s.columns == nil {
		s.columns = s.opts.Export.Columns
		if s.columns == nil {
			s.columns = &has
		}
	}
	if s.opts.Export.Columns == nil {
		if extra := s.columns.Missing(has); len(extra) > 0 {
			return export.Refuse(row, extra[0], "columns", "name the set's columns in Options.Columns", "the row has this column and the first row of the set has not")
		}
	}
	return nil
}
