package shard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// journal tells which rollouts are in the shards that are done, and what their maker
// wants to know of them. A line is durable before the progress file names its shard.
type journal struct {
	file  *os.File
	lines bytes.Buffer // not yet written
	kept  map[string][]byte
	past  map[string]struct{} // rollouts in shards that are done
}

// entry is one line. Shard is −1 for a rollout without rows.
type entry struct {
	Shard   int             `json:"shard"`
	Group   string          `json:"group,omitempty"`
	Rollout string          `json:"rollout"`
	Kept    json.RawMessage `json:"kept,omitempty"`
}

// Kept returns what Keep was given for a rollout whose rows an earlier run has
// written: they need not be made again, and are passed over when they come. nil means
// that they must be made. It may be called from several goroutines, until Write.
func (s *Set) Kept(rollout string) []byte { return s.journal.kept[rollout] }

// Keep gives what Kept will return in a later run once the rows of the rollout are in
// a shard that is done, or at once where it has none: a JSON value of the maker's own,
// nil when the rows must be made again. It comes before the rows.
func (s *Set) Keep(rollout string, rows int, value []byte) error {
	if s.opts.Source == "" || value == nil {
		return nil
	}
	if rows == 0 {
		return s.journal.add(entry{-1, "", rollout, value})
	}
	if s.pending == nil {
		s.pending = map[string][]byte{}
	}
	s.pending[rollout] = value
	return nil
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

func (j *journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: e.Rollout}, "what is kept of it is no JSON: %w", err)
	}
	j.lines.Write(append(line, '\n'))
	return nil
}

// sync makes the lines durable.
func (j *journal) sync() error {
	if j.file == nil {
		return nil
	}
	_, err := j.file.Write(j.lines.Bytes())
	j.lines.Reset()
	if err == nil {
		err = j.file.Sync()
	}
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
	entries, whole := readJournal(f)
	rollouts := make([]map[string]struct{}, s.resumed)
	kept := map[string][]byte{}
	for _, e := range entries {
		if e.Shard >= s.resumed {
			continue // made again
		}
		if e.Shard >= 0 {
			if rollouts[e.Shard] == nil {
				rollouts[e.Shard] = map[string]struct{}{}
			}
			rollouts[e.Shard][e.Rollout] = struct{}{}
		}
		if e.Kept != nil {
			kept[e.Rollout] = e.Kept
		}
	}
	for i, in := range rollouts {
		if len(in) != s.progress.Shards[i].Rollouts {
			whole, kept = 0, nil
			break
		}
	}
	if kept != nil && s.resumed > 0 {
		s.skip(entries, kept)
	}
	if err = f.Truncate(whole); err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	return nil
}

// skip goes on after the shards that are done.
func (s *Set) skip(entries []entry, kept map[string][]byte) {
	s.next, s.journal.kept, s.journal.past = s.resumed, kept, map[string]struct{}{}
	for _, e := range entries {
		if e.Shard < 0 || e.Shard >= s.resumed {
			continue
		}
		s.journal.past[e.Rollout] = struct{}{}
		s.seen[s.key("g", e.Group)], s.seen[s.key("r", e.Rollout)] = struct{}{}, struct{}{}
	}
	if c := columnsNamed(s.progress.Columns); s.columns == nil && s.opts.Maker == nil {
		s.columns = &c
	}
}

// readJournal returns the lines of f up to the first that is not whole, and how many
// bytes they take.
func readJournal(f io.Reader) (out []entry, whole int64) {
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return out, whole
		}
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Shard < -1 {
			return out, whole
		}
		out = append(out, e)
		whole += int64(len(line))
	}
}

// record adds the rollouts of shard i, which is done.
func (s *Set) record(i int, rollouts []member) error {
	if s.opts.Source == "" {
		return nil
	}
	var errs []error
	for _, m := range rollouts {
		errs = append(errs, s.journal.add(entry{i, m.group, m.rollout, s.pending[m.rollout]}))
		delete(s.pending, m.rollout)
	}
	return errors.Join(append(errs, s.journal.sync())...)
}

// member is a rollout of the open shard.
type member struct{ group, rollout string }
