package shard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strconv"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// journal tells which rollouts are in the shards that are done, and what their maker
// wants to know of them. A line is durable before the progress file names its shard.
// What is kept of a rollout stays in the file: memory holds where.
type journal struct {
	file  *os.File
	lines bytes.Buffer // not yet written
	kept  map[string]span
	past  map[string]struct{} // rollouts in shards that are done
}

// span is where a line of the journal stands.
type span struct{ at, size int64 }

// The shards of lines that are of no shard.
const (
	noShard  = -1 // of a rollout without rows
	anyShard = -2 // of one whose rows come later: a line of their shard follows when that is done
)

// maxLines is how many bytes of lines wait in memory.
const maxLines = 64 << 10

// entry is one line.
type entry struct {
	Shard   int             `json:"shard"`
	Group   string          `json:"group,omitempty"`
	Rollout string          `json:"rollout"`
	Kept    json.RawMessage `json:"kept,omitempty"`
}

// Kept returns what Keep was given for a rollout whose rows an earlier run has
// written: they need not be made again, and are passed over when they come. nil means
// that they must be made. It may be called from several goroutines, until Write.
func (s *Set) Kept(rollout string) []byte {
	at, ok := s.journal.kept[rollout]
	if !ok {
		return nil
	}
	line := make([]byte, at.size)
	var e entry
	if _, err := s.journal.file.ReadAt(line, at.at); err != nil || json.Unmarshal(line, &e) != nil {
		return []byte{} // no JSON: the maker tells it from what it gave
	}
	return e.Kept
}

// Keep gives what Kept will return in a later run once the rows of the rollout are in
// a shard that is done, or at once where it has none: a JSON value of the maker's own,
// nil when the rows must be made again. It comes before the rows.
func (s *Set) Keep(rollout string, rows int, value []byte) error {
	if s.opts.Source == "" || value == nil && rows == 0 {
		return nil
	}
	shard := anyShard
	if rows == 0 {
		shard = noShard
	}
	return s.journal.add(shard, rollout, value)
}

// State is what SetState was given by an earlier run that this one goes on from, nil
// for none.
func (s *Set) State() []byte {
	if s.opts.Source == "" || s.lock == nil {
		return nil
	}
	text, err := os.ReadFile(s.path(stateName))
	if err != nil {
		return nil // it is made again
	}
	return text
}

// SetState keeps what a later run needs besides the rows, durably, until the set is
// complete: a value of the maker's own. Without a Source it does nothing.
func (s *Set) SetState(value []byte) error {
	if s.opts.Source == "" || s.lock == nil || s.done {
		return nil
	}
	return atomic.WriteFile(s.path(stateName), value, true)
}

func (j *journal) add(shard int, id string, kept []byte) error {
	from := j.lines.Len()
	begin(&j.lines, shard)
	name(&j.lines, "rollout", id)
	if len(kept) > 0 {
		j.lines.WriteString(`,"kept":`)
		if err := json.Compact(&j.lines, kept); err != nil {
			j.lines.Truncate(from)
			return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: id}, "what is kept of it is no JSON: %w", err)
		}
	}
	j.lines.WriteString("}\n")
	if j.lines.Len() < maxLines {
		return nil
	}
	return j.flush()
}

// flush hands the lines to the file.
func (j *journal) flush() error {
	if j.file == nil {
		return nil
	}
	_, err := j.file.Write(j.lines.Bytes())
	j.lines.Reset()
	return j.located(err)
}

// sync makes the lines durable.
func (j *journal) sync() error {
	if j.file == nil {
		return nil
	}
	if err := j.flush(); err != nil {
		return err
	}
	return j.located(j.file.Sync())
}

func (j *journal) located(err error) error {
	if err != nil {
		return atomic.Locate(rollout.Where{File: j.file.Name()}, err)
	}
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// openJournal reads the journal of the run that this one goes on from. Where it tells
// of every rollout in the shards that are done, those are not asked for again; else
// it begins anew, and rows are compared.
func (s *Set) openJournal() error {
	if s.opts.Source == "" {
		return nil
	}
	path := s.path(journalName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	s.journal.file = f
	lines := make([]map[string]struct{}, s.resumed) // rollouts by shard
	groups := map[string]struct{}{}
	later, kept := map[string]span{}, map[string]span{}
	whole := readJournal(f, func(e *entry, at span) {
		switch {
		case e.Shard >= s.resumed:
			return // made again
		case e.Shard == anyShard && e.Kept == nil:
			delete(later, e.Rollout)
			return
		case e.Shard == anyShard:
			later[e.Rollout] = at
			return
		case e.Shard >= 0:
			if lines[e.Shard] == nil {
				lines[e.Shard] = map[string]struct{}{}
			}
			lines[e.Shard][e.Rollout] = struct{}{}
			groups[e.Group] = struct{}{}
			if at, ok := later[e.Rollout]; ok && e.Kept == nil {
				kept[e.Rollout] = at
				delete(later, e.Rollout)
			}
		}
		if e.Kept != nil {
			kept[e.Rollout] = at
		}
	})
	for i, in := range lines {
		if len(in) != s.progress.Shards[i].Rollouts {
			whole, kept = 0, nil
			break
		}
	}
	if kept != nil && s.resumed > 0 {
		s.skip(lines, groups, kept)
	}
	if err = f.Truncate(whole); err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	return nil
}

// skip goes on after the shards that are done, which hold these rollouts and groups.
func (s *Set) skip(rollouts []map[string]struct{}, groups map[string]struct{}, kept map[string]span) {
	s.next, s.journal.kept, s.journal.past = s.resumed, kept, map[string]struct{}{}
	for _, in := range rollouts {
		for id := range in {
			s.journal.past[id] = struct{}{}
			s.seen.Add(s.key("r", id), struct{}{})
		}
		clear(in)
	}
	for group := range groups {
		s.seen.Add(s.key("g", group), struct{}{})
	}
	if c := columnsNamed(s.progress.Columns); s.columns == nil && s.opts.Maker == nil {
		s.columns = &c
	}
}

// readJournal gives the lines of f up to the first that is not whole, and returns how
// many bytes they take.
func readJournal(f io.Reader, line func(*entry, span)) (whole int64) {
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		text, err := r.ReadBytes('\n')
		if err != nil {
			return whole
		}
		var e entry
		if json.Unmarshal(text, &e) != nil || e.Shard < anyShard {
			return whole
		}
		line(&e, span{whole, int64(len(text))})
		whole += int64(len(text))
	}
}

// enter adds the last rollout of the open shard to its lines: a million as strings would be
// followed at every collection.
func (s *Set) enter(c *current) {
	if s.opts.Source == "" {
		return
	}
	begin(&c.lines, s.next)
	name(&c.lines, "group", c.last.group)
	name(&c.lines, "rollout", c.last.rollout)
	c.lines.WriteString("}\n")
}

// begin begins a line, which is an entry as JSON: written by hand, since every rollout has two.
func begin(to *bytes.Buffer, shard int) {
	to.WriteString(`{"shard":`)
	to.Write(strconv.AppendInt(to.AvailableBuffer(), int64(shard), 10))
}

func name(to *bytes.Buffer, field, id string) {
	to.WriteString(`,"`)
	to.WriteString(field)
	to.WriteString(`":`)
	for i := range len(id) {
		if c := id[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(id) // a string does not fail
			to.Write(text)
			return
		}
	}
	to.WriteByte('"')
	to.WriteString(id)
	to.WriteByte('"')
}

// record hands the lines of a shard that is done to the journal.
func (s *Set) record(c *current) error {
	if s.opts.Source == "" {
		return nil
	}
	s.journal.lines.Write(c.lines.Bytes())
	return s.journal.sync()
}

// member is a rollout of the open shard.
type member struct{ group, rollout string }
