package shard

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/rollout"
)

// WriteGroup adds all rows of one group to the shard that is open, or begins the next
// one; a group that is refused leaves the set as it was, and the next can be written.
func (s *Set) WriteGroup(rows []rollout.Sample) error {
	switch {
	case s.lock == nil:
		return zeroSet()
	case s.err == nil && s.done:
		return export.ErrClosed
	case s.err != nil || len(rows) == 0:
		return s.err
	}
	err := s.writeGroup(rows)
	if _, refused := errors.AsType[*export.RefusedError](err); !refused {
		s.err = err
	}
	return err
}

func (s *Set) writeGroup(rows []rollout.Sample) error {
	if s.cur != nil && s.full() {
		if err := s.finish(); err != nil {
			return err
		}
	}
	group, open := s.group, s.rollout
	s.group, s.rollout = "", ""
	columns, fresh := s.columns, s.cur == nil
	tokenizer, template := s.opts.Export.Tokenizer, s.opts.Export.Template
	var added [][16]byte
	back := func(err error) error {
		for _, k := range added {
			delete(s.seen, k)
		}
		s.group, s.rollout, s.columns = group, open, columns
		s.opts.Export.Tokenizer, s.opts.Export.Template = tokenizer, template
		if c := s.cur; fresh && c != nil { // it has the columns of the refused group
			if s.cur = nil; c.file != nil {
				err = errors.Join(err, c.file.Abort())
			}
		}
		return err
	}
	for i := range rows {
		row := &rows[i]
		for _, k := range [][16]byte{s.key("g", row.Group), s.key("r", row.Rollout)} {
			if _, there := s.seen[k]; !there {
				added = append(added, k)
			}
		}
		if err := errors.Join(s.unique(row, i == 0), s.sameColumns(row)); err != nil {
			return back(err)
		}
	}
	if s.cur == nil {
		if err := s.open(&rows[0]); err != nil {
			return back(err)
		}
	}
	if err := s.cur.group(rows, s.opts.Export); err != nil {
		return back(err)
	}
	for i := range rows {
		s.add(&spool.Row{Sample: rows[i]}, i == 0)
	}
	return nil
}

// group writes a group, or checks it where the shard is not written row by row.
func (c *current) group(rows []rollout.Sample, o export.Options) (err error) {
	if c.w != nil {
		return c.w.WriteGroup(rows)
	}
	if c.check == nil {
		if c.check, err = export.NewChecker(o); err != nil {
			return err
		}
	}
	return c.check.CheckGroup(slices.Clone(rows))
}

// EndStep ends the shard that is open: it is durable, readable and in the progress
// file when EndStep returns. The next row begins the next training step, in which the
// keys of groups may come again; those of rollouts may not.
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

// unique refuses a group or rollout that comes back in a later shard; within
// one shard the writer does.
func (s *Set) unique(row *rollout.Sample, newGroup bool) error {
	if newGroup {
		if err := s.first("g", row.Group, row, export.ColGroupID, "write the rollouts of a group one after the other, or end the step between them (EndStep)"); err != nil {
			return err
		}
		s.group = row.Group
	}
	if s.rollout != row.Rollout {
		if err := s.first("r", row.Rollout, row, export.ColRolloutID, "write the rows of a rollout one after the other and give rollouts unique ids"); err != nil {
			return err
		}
		s.rollout = row.Rollout
	}
	return nil
}

func (s *Set) first(what, id string, row *rollout.Sample, column, fix string) error {
	k := s.key(what, id)
	if _, there := s.seen[k]; there {
		return export.Refuse(row, column, export.RuleOrder, fix, "%q was closed before", id)
	}
	s.seen[k] = struct{}{}
	return nil
}

// key stands for a rollout of the set, or for a group of the step.
func (s *Set) key(what, id string) [16]byte {
	if what == "g" && s.step > 0 {
		what = fmt.Sprint("g", s.step, ":")
	}
	h := sha256.Sum256([]byte(what + id))
	return [16]byte(h[:16])
}

// sameColumns lets the first row of the set decide its optional columns.
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
			return export.Refuse(row, extra[0], export.RuleColumns, "name the set's columns in Options.Columns", "the row has this column and the first row of the set has not")
		}
	}
	return nil
}
