package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/keys"
	"github.com/turnpack/turnpack/internal/spool"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Set writes the shards of one folder. It must not be used concurrently.
type Set struct {
	dir  string
	opts Options
	lock *os.File
	err  error
	done bool

	progress progress
	resumed  int // finished shards of an earlier run
	manifest Manifest
	columns  *export.Columns
	journal  journal
	seen     keys.Table[struct{}]
	group    string
	rollout  string
	step     int // counts the calls of EndStep

	cur  *current
	next int // index of the current shard, or of the one that the next row starts
}

// current is the shard that rows are added to. If an earlier run has finished the shard, only
// the input checksum is computed.
type current struct {
	shard   Shard
	done    bool             // finished by an earlier run
	w       *export.Writer   // nil if done, and with a Maker
	rows    []rollout.Sample // for the Maker
	last    member
	entries []byte // journal entries, one per rollout
	file    *atomic.File
	sum     hash.Hash
	crc     hash.Hash32
	buf     []byte
}

// Shards describes the finished shards, including those of earlier runs.
func (s *Set) Shards() []Shard { return slices.Clone(s.progress.Shards) }

func (s *Set) path(name string) string { return filepath.Join(s.dir, name) }

// Write checks row and adds it to the current shard or to a new one.
func (s *Set) Write(row rollout.Sample) error { return s.take(&spool.Row{Sample: row}) }

// WriteRuns is Write for a long row, in the form that export.Writer.WriteRuns takes. With a
// Maker, which holds its rows in memory, rows of more than 4,194,304 tokens are refused.
func (s *Set) WriteRuns(row rollout.Sample, lens []int32, ids []rollout.TokenID, logprobs []float32) error {
	return s.take(&spool.Row{Sample: row, Lens: lens, Tokens: ids, Logprobs: logprobs})
}

func (s *Set) take(row *spool.Row) error {
	switch {
	case s.lock == nil:
		return zeroSet()
	case s.err == nil && s.done:
		return export.ErrClosed
	case s.err == nil && row.Lens != nil && s.opts.Maker != nil:
		if s.err = row.CheckWhole(); s.err == nil {
			s.err = s.write(&spool.Row{Sample: row.Whole()})
		}
	case s.err == nil:
		s.err = s.write(row)
	}
	return s.err
}

func zeroSet() error { return zero.Value("shard.Set", "Create") }

func (s *Set) write(r *spool.Row) error {
	row := &r.Sample
	if s.journal.finished(row.Rollout) {
		return nil
	}
	newGroup := s.group != row.Group || s.rollout == ""
	if s.cur != nil && newGroup && s.full() {
		if err := s.finish(); err != nil {
			return err
		}
	}
	if err := s.unique(row, newGroup); err != nil {
		return err
	}
	if err := s.sameColumns(row); err != nil {
		return err
	}
	if s.cur == nil {
		if err := s.open(row); err != nil {
			return err
		}
	}
	w := s.cur.w
	if w == nil {
		s.add(r, newGroup)
		return nil
	}
	if r.Lens == nil {
		if err := w.Write(*row); err != nil {
			return err
		}
		s.add(r, newGroup)
		return nil
	}
	s.add(r, newGroup) // before WriteRuns, which takes over the ids
	return w.WriteRuns(*row, r.Lens, r.Tokens, r.Logprobs)
}

// add counts a row of the current shard and adds it to the checksum.
func (s *Set) add(r *spool.Row, newGroup bool) {
	c, row := s.cur, &r.Sample
	c.checksum(r, s.opts.Export.Trace)
	if s.opts.Maker != nil && !c.done {
		c.rows = append(c.rows, *row)
	}
	first := c.shard.Rows == 0
	c.shard.Rows++
	id := rollout.SampleID(row.Rollout, row.SampleIndex)
	if first {
		c.shard.First = id
	}
	c.shard.Last = id
	c.shard.Length.add(float64(r.Len()), first)
	c.shard.Reward.add(float64(float32(row.Reward)), first)
	if first {
		c.shard.Temperature = new(Range)
	}
	c.shard.Temperature.add(float64(row.Temperature), first)
	for i, v := range row.Version { // one entry per run in a run-length encoded row
		if row.Weight[i] > 0 {
			none := c.shard.Versions == nil
			if none {
				c.shard.Versions = new(Range)
			}
			c.shard.Versions.add(float64(v), none)
		}
	}
	c.shard.Tokens += int64(r.Len())
	c.shard.Trained += int64(r.Trained())
	if newGroup {
		c.shard.Groups++
	}
	if m := (member{row.Group, row.Rollout}); first || c.last != m {
		c.last = m
		c.shard.Rollouts++
		s.addEntry(c)
	}
}

// full reports whether the current shard ends if the next row starts a group.
func (s *Set) full() bool {
	c := s.cur
	if c.done {
		return c.shard.Rows >= s.progress.Shards[s.next].Rows
	}
	o := &s.opts
	return o.RowsPerShard > 0 && c.shard.Rows >= o.RowsPerShard ||
		o.GroupsPerShard > 0 && c.shard.Groups >= o.GroupsPerShard ||
		o.BytesPerShard > 0 && c.w != nil && c.w.Stats().Bytes >= o.BytesPerShard
}

func (s *Set) open(row *rollout.Sample) error {
	if s.opts.Maker != nil {
		return s.openMade()
	}
	name := s.opts.name(s.next)
	local := filepath.FromSlash(name)
	if name != path.Clean(name) || !filepath.IsLocal(local) || strings.HasPrefix(path.Base(name), ".") || name == ManifestName || name == ProgressName {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Name"}, "%q is no name for a shard", name).WithFix("give a file name, with folders of the set before it or without")
	}
	for i := range s.next {
		if s.progress.Shards[i].File == name {
			return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Name"}, "shards %d and %d are both named %q", i, s.next, name).WithFix("give each shard a name of its own")
		}
	}
	c := &current{shard: Shard{File: name}, crc: crc32.New(castagnoli)}
	s.cur = c
	if c.done = s.next < s.resumed; c.done {
		return nil
	}
	if s.opts.Export.Tokenizer == "" {
		s.opts.Export.Tokenizer = row.Tokenizer
	}
	if s.opts.Export.Template == "" {
		s.opts.Export.Template = row.Template
	}
	if err := os.MkdirAll(filepath.Dir(s.path(local)), 0o777); err != nil {
		return atomic.Locate(rollout.Where{File: s.path(local)}, err)
	}
	var err error
	if c.file, err = atomic.Create(s.path(local), true); err != nil {
		return err
	}
	c.sum = sha256.New()
	o := s.opts.Export
	o.Columns = s.columns
	c.w, err = export.NewWriter(io.MultiWriter(c.file, c.sum), o)
	return err
}

// openMade starts a shard whose files a Maker writes. It refuses to replace existing files,
// except those that a killed run can have left.
func (s *Set) openMade() error {
	names := s.opts.Maker.Names(s.next)
	if len(names) == 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Maker"}, "Names gives no file for shard %d, expected at least one", s.next).WithFix("name a file for each shard")
	}
	s.cur = &current{shard: Shard{File: names[0]}, crc: crc32.New(castagnoli), done: s.next < s.resumed}
	if s.cur.done || s.opts.Force || s.progress.Making && s.next == s.resumed {
		return nil
	}
	for _, name := range names {
		if _, err := os.Lstat(s.path(filepath.FromSlash(name))); err == nil {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.path(name)}, "%w and belongs to no run", export.ErrExists).
				WithFix("choose another folder, or replace what is there (Options.Force, convert --force)")
		}
	}
	return nil
}

// finish ends the current shard and records it.
func (s *Set) finish() error {
	c := s.cur
	if c == nil {
		return nil
	}
	c.shard.Input = fmt.Sprintf("%08x", c.crc.Sum32())
	if c.done {
		old := s.progress.Shards[s.next]
		if old.Input != c.shard.Input || old.Rows != c.shard.Rows {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.path(old.File)},
				"%w, or with another input: the rows differ from those of the run that wrote this shard (%d rows with checksum %s, now %d with %s)", export.ErrOtherRun, old.Rows, old.Input, c.shard.Rows, c.shard.Input).
				WithFix("give the input of the first run, or start anew (Options.Force, convert --force)")
		}
	} else if err := s.publish(c); err != nil {
		return err
	}
	s.cur = nil
	s.next++
	if err := s.saveEntries(c); err != nil || c.done {
		return err
	}
	s.progress.Shards = append(s.progress.Shards, c.shard)
	s.progress.Making = false
	if s.columns != nil {
		s.progress.Columns = s.opts.Export.InUse(*s.columns)
	}
	return writeJSON(s.path(ProgressName), s.progress)
}

// publish makes the files of a shard durable and describes them.
func (s *Set) publish(c *current) error {
	if m := s.opts.Maker; m != nil {
		s.progress.Making = true
		if err := writeJSON(s.path(ProgressName), s.progress); err != nil {
			return err
		}
		if err := m.Write(s.next, c.rows); err != nil {
			return err
		}
		for i, name := range m.Names(s.next) {
			f, err := digest(s.dir, name)
			if err != nil {
				return err
			}
			if i == 0 {
				c.shard.Bytes, c.shard.SHA256 = f.Bytes, f.SHA256
			} else {
				c.shard.Others = append(c.shard.Others, f)
			}
		}
		return nil
	}
	if err := c.w.Close(); err != nil {
		return err
	}
	if err := c.file.Commit(); err != nil {
		return err
	}
	c.shard.Bytes, c.shard.SHA256 = c.w.Stats().Bytes, hex.EncodeToString(c.sum.Sum(nil))
	return nil
}

// Close ends the last shard, writes the manifest and unlocks the folder. After an error the
// finished shards stay, and a later run resumes after them; if there is none, nothing stays.
func (s *Set) Close() error {
	if s.lock == nil {
		return zeroSet()
	}
	if s.done {
		return s.err
	}
	s.done = true
	if s.err == nil {
		if s.err = s.complete(); s.err != nil && len(s.progress.Shards) == 0 {
			s.err = errors.Join(s.err, s.clear())
		}
	}
	return errors.Join(s.err, s.release())
}

// Abort drops the current shard and unlocks the folder without a manifest. The finished shards
// stay for a later run, and the folder stays marked as unfinished. After Close it does nothing;
// Close after Abort returns export.ErrAborted.
func (s *Set) Abort() error {
	if s.lock == nil || s.done {
		return nil
	}
	s.done = true
	if s.err == nil {
		s.err = export.ErrAborted
	}
	return s.release()
}

// Discard removes the set, including its finished shards and those of the earlier runs that it
// resumed. After Close it does nothing.
func (s *Set) Discard() error {
	if s.lock == nil || s.done {
		return nil
	}
	return errors.Join(s.clear(s.progress.Shards), s.Abort())
}

func (s *Set) release() error {
	var err error
	if c := s.cur; c != nil {
		if c.file != nil {
			err = c.file.Abort()
		}
		s.removeEmptyFolders(c.shard.File)
	}
	return errors.Join(err, s.journal.close(), atomic.Release(s.lock))
}

func (s *Set) complete() error {
	if err := s.finish(); err != nil {
		return err
	}
	if s.next < s.resumed {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.dir}, "the input ends after %d of the %d shards of an earlier run", s.next, s.resumed).
			WithFix("give the input of the first run, or start anew (Options.Force, convert --force)")
	}
	e := s.opts.Export
	m := &s.manifest
	*m = Manifest{SchemaVersion: export.SchemaVersion, Tokenizer: e.Tokenizer, Template: e.Template, Estimator: e.Estimator,
		Columns: s.progress.Columns, Source: s.opts.Source, Options: s.progress.Options, Shards: s.progress.Shards}
	m.count()
	if err := s.digests(); err != nil {
		return err
	}
	if err := writeJSON(s.path(ManifestName), m); err != nil {
		return err
	}
	return errors.Join(atomic.Remove(s.path(ProgressName)), atomic.Remove(s.path(journalName)), atomic.Remove(s.path(stateName)))
}

// digests takes the tokenizer and template digests from the first shard if an earlier run wrote
// every shard.
func (s *Set) digests() error {
	m := &s.manifest
	if s.opts.Maker != nil || len(m.Shards) == 0 || m.Tokenizer != "" && m.Template != "" {
		return nil
	}
	r, err := export.Open(s.path(filepath.FromSlash(m.Shards[0].File)))
	if err != nil {
		return err
	}
	m.Tokenizer, m.Template = r.Info().Tokenizer, r.Info().Template
	return r.Close()
}

// Manifest returns the manifest that Close wrote.
func (s *Set) Manifest() Manifest { return s.manifest }
