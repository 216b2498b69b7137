package export

import (
	"slices"

	"github.com/turnpack/turnpack/export/internal/pq"
	"github.com/turnpack/turnpack/rollout"
)

// CheckGroup checks all rows of one group, the end of its last rollout included. A
// group that is refused leaves the checker as it was: the next one can be checked.
// The error names the rollout at fault. Empty Sample.IDs are set.
func (c *Checker) CheckGroup(rows []rollout.Sample) error {
	if len(rows) == 0 {
		return nil
	}
	if err := c.order.end(); err != nil {
		return err
	}
	before := *c
	undo := c.order.marks(rows)
	for i := range rows {
		s := &rows[i]
		err := error(nil)
		if s.Group != rows[0].Group {
			err = Refuse(s, ColGroupID, RuleOrder, "give the rows of one group", "it is in group %q, the first row in %q", s.Group, rows[0].Group)
		} else if i == 0 && c.started && c.order.open != nil && s.Group == c.order.group {
			err = Refuse(s, ColGroupID, RuleOrder, "give all rows of a group at once", "rows of group %q were written before", s.Group)
		} else {
			err = c.Check(s)
		}
		if err == nil && i == len(rows)-1 {
			err = c.order.end()
		}
		if err != nil {
			*c = before
			undo()
			return err
		}
	}
	return nil
}

// marks returns what forgets the keys of rows that are not seen yet.
func (o *order) marks(rows []rollout.Sample) (undo func()) {
	if o.groups == nil {
		return func() {}
	}
	group := key(rows[0].Group)
	_, seen := o.groups[group]
	var fresh [][16]byte
	for i := range rows {
		if k := key(rows[i].Rollout); i == 0 || rows[i].Rollout != rows[i-1].Rollout {
			if _, seen := o.rollouts[k]; !seen {
				fresh = append(fresh, k)
			}
		}
	}
	return func() {
		if !seen {
			delete(o.groups, group)
		}
		for _, k := range fresh {
			delete(o.rollouts, k)
		}
	}
}

// WriteGroup checks all rows of one group and adds them, or refuses the group with
// the reason and adds none of them; then the next group can be written all the same.
// Rows that were written before, row by row, must end with a whole rollout.
func (w *Writer) WriteGroup(rows []rollout.Sample) error {
	switch {
	case !w.made():
		return zeroWriter()
	case len(rows) == 0:
		return nil
	case w.err != nil || w.closed:
		return w.ended(&rows[0])
	}
	rows = slices.Clone(rows) // ids are set
	if err := w.check.CheckGroup(rows); err != nil {
		return err
	}
	for i := range rows {
		newRollout := i == 0 || rows[i].Rollout != rows[i-1].Rollout
		if w.err = w.take(&rows[i], tokensOf(&rows[i]), rows[i].Sequence.Trained(), i == 0, newRollout); w.err != nil {
			return w.err
		}
	}
	return nil
}

// Flush makes what was written so far durable and readable: a reader that opens the
// file now finds every row taken before. A file of Create shows under its name with
// FlushedSuffix until Close gives it its own; should the writer be killed, that file
// stays, and Open reads it up to the last Flush. The last rollout must be whole, as
// it is at a group's end. Each flush ends a row group and costs a footer, some
// kilobytes for each row group of the file. Arrow files are readable only when they
// are closed: for them Flush is an error, and the writer goes on.
func (w *Writer) Flush() error {
	switch {
	case !w.made():
		return zeroWriter()
	case w.err != nil:
		return w.err
	case w.closed:
		return ErrClosed
	}
	file, ok := w.out.(*pq.Writer)
	if !ok {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Format"}, "an Arrow file is readable only when it is closed").WithFix("write Parquet, or a file for each part")
	}
	if err := w.check.End(); err != nil {
		return err
	}
	w.err = w.publish(file)
	return w.err
}

func (w *Writer) publish(file *pq.Writer) error {
	if err := w.flush(); err != nil {
		return err
	}
	kv, err := w.metadata()
	if err != nil {
		return err
	}
	if err := file.Flush(kv); err != nil {
		return writeError(err)
	}
	w.stats.Bytes = w.out.Written()
	if f, ok := w.sink.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}
