package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Set writes the shards of one folder. It must not be used concurrently.
type Set struct {
	dir  string
	opts Options
	lock *lock
	err  error
	done bool

	progress progress
	resumed  int // shards of an earlier run that are skipped
	manifest Manifest
	columns  *export.Columns
	seen     map[[16]byte]struct{}
	group    string
	rollout  string

	cur  *current
	next int // shard that the next row starts or goes on with
}

// current is the shard that rows go to. For a shard that an earlier run has
// finished only the input checksum is computed.
type current struct {
	shard Shard
	w     *export.Writer // nil = skipped
	file  *atomic.File
	sum   hash.Hash
	crc   hash.Hash32
	buf   []byte
}

// Resumed is the number of shards that an earlier run has finished.
func (s *Set) Resumed() int { return s.resumed }

func (s *Set) path(name string) string { return filepath.Join(s.dir, name) }

// Write checks s and adds it to the shard that is open, or begins the next one.
func (s *Set) Write(row rollout.Sample) error {
	switch {
	case s.lock == nil:
		return zeroSet()
	case s.err == nil && s.done:
		return export.ErrClosed
	case s.err == nil:
		s.err = s.write(&row)
	}
	return s.err
}

func zeroSet() error { return zero.Value("shard.Set", "Create") }

func (s *Set) write(row *rollout.Sample) error {
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
	c := s.cur
	c.checksum(row, s.opts.Export.Trace)
	if c.w != nil {
		if err := c.w.Write(*row); err != nil {
			return err
		}
	}
	first := c.shard.Rows == 0
	c.shard.Rows++
	id := row.ID
	if id == "" {
		id = export.SampleID(row.Rollout, row.SampleIndex)
	}
	if first {
		c.shard.First = id
	}
	c.shard.Last = id
	c.shard.Length.add(float64(row.Len()), first)
	c.shard.Reward.add(float64(float32(row.Reward)), first)
	if newGroup {
		c.shard.Groups++
	}
	return nil
}

// unique refuses a group or rollout that comes back in a later shard; within
// one shard the writer does.
func (s *Set) unique(row *rollout.Sample, newGroup bool) error {
	if newGroup {
		if err := s.first("g", row.Group, row, export.ColGroupID); err != nil {
			return err
		}
		s.group = row.Group
	}
	if s.rollout != row.Rollout {
		if err := s.first("r", row.Rollout, row, export.ColRolloutID); err != nil {
			return err
		}
		s.rollout = row.Rollout
	}
	return nil
}

func (s *Set) first(what, id string, row *rollout.Sample, column string) error {
	h := sha256.Sum256([]byte(what + id))
	k := [16]byte(h[:16])
	if _, there := s.seen[k]; there {
		return export.Refuse(row, column, export.RuleOrder, "write groups and rollouts one after the other", "%q was closed before", id)
	}
	s.seen[k] = struct{}{}
	return nil
}

// sameColumns lets the first row of the set decide its optional columns.
func (s *Set) sameColumns(row *rollout.Sample) error {
	has := export.ColumnsOf(row)
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

// full says whether the open shard ends where the next group begins.
func (s *Set) full() bool {
	c := s.cur
	if c.w == nil {
		return c.shard.Rows >= s.progress.Shards[s.next].Rows
	}
	o := &s.opts
	return o.RowsPerShard > 0 && c.shard.Rows >= o.RowsPerShard ||
		o.GroupsPerShard > 0 && c.shard.Groups >= o.GroupsPerShard ||
		o.BytesPerShard > 0 && c.w.Stats().Bytes >= o.BytesPerShard
}

func (s *Set) open(row *rollout.Sample) error {
	name := s.opts.name(s.next)
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") || name == ManifestName || name == ProgressName {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.Name"}, "%q is no name for a shard", name).WithFix("give a file name without a folder")
	}
	c := &current{shard: Shard{File: name}, crc: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	s.cur = c
	if s.next < s.resumed {
		return nil
	}
	if s.opts.Export.Tokenizer == "" {
		s.opts.Export.Tokenizer = row.Tokenizer
	}
	if s.opts.Export.Template == "" {
		s.opts.Export.Template = row.Template
	}
	var err error
	if c.file, err = atomic.Create(s.path(name), true); err != nil {
		return err
	}
	c.sum = sha256.New()
	o := s.opts.Export
	o.Columns = s.columns
	c.w, err = export.NewWriter(io.MultiWriter(c.file, c.sum), o)
	return err
}

// finish ends the open shard and records it.
func (s *Set) finish() error {
	c := s.cur
	s.cur = nil
	if c == nil {
		return nil
	}
	c.shard.Input = fmt.Sprintf("%08x", c.crc.Sum32())
	if c.w == nil {
		old := s.progress.Shards[s.next]
		if old.Input != c.shard.Input || old.Rows != c.shard.Rows {
			return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.path(old.File)},
				"the rows differ from those of the run that wrote this shard (%d rows with checksum %s, now %d with %s)", old.Rows, old.Input, c.shard.Rows, c.shard.Input).
				WithFix("give the input of the first run, or set Options.Force to start anew")
		}
		s.next++
		return nil
	}
	if err := c.w.Close(); err != nil {
		return errors.Join(err, c.file.Abort())
	}
	if err := c.file.Commit(); err != nil {
		return err
	}
	st := c.w.Stats()
	c.shard.Bytes, c.shard.SHA256 = st.Bytes, hex.EncodeToString(c.sum.Sum(nil))
	c.shard.Rollouts, c.shard.Groups, c.shard.Tokens, c.shard.Trained = st.Rollouts, st.Groups, st.Tokens, st.Trained
	s.progress.Shards = append(s.progress.Shards, c.shard)
	s.progress.Columns = s.opts.Export.InUse(*s.columns)
	s.next++
	return writeJSON(s.path(ProgressName), s.progress)
}

// Close ends the last shard, writes the manifest and frees the folder. After an
// error the shards that are done stay, and a later run goes on from them.
func (s *Set) Close() error {
	if s.lock == nil {
		return zeroSet()
	}
	if s.done {
		return s.err
	}
	s.done = true
	if s.err == nil {
		s.err = s.complete()
	}
	return errors.Join(s.err, s.leave())
}

// Abort drops the shard that is open and frees the folder, without a manifest: the
// shards that are done stay for a later run, and the folder says that it is not
// finished. After Close it does nothing; a Close after it returns export.ErrAborted.
func (s *Set) Abort() error {
	if s.lock == nil || s.done {
		return nil
	}
	s.done = true
	if s.err == nil {
		s.err = export.ErrAborted
	}
	return s.leave()
}

// Discard drops the set: the shards that are done as well, those of the earlier
// runs that this one went on from among them. After Close it does nothing.
func (s *Set) Discard() error {
	if s.lock == nil || s.done {
		return nil
	}
	return errors.Join(s.clear(s.progress.Shards), s.Abort())
}

func (s *Set) leave() error {
	var err error
	if s.cur != nil && s.cur.file != nil {
		err = s.cur.file.Abort()
	}
	return errors.Join(err, s.lock.release())
}

func (s *Set) complete() error {
	if err := s.finish(); err != nil {
		return err
	}
	if s.next < s.resumed {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.dir}, "the input ends after %d of the %d shards of an earlier run", s.next, s.resumed).
			WithFix("give the input of the first run, or set Options.Force to start anew")
	}
	e := s.opts.Export
	m := &s.manifest
	*m = Manifest{SchemaVersion: export.SchemaVersion, Tokenizer: e.Tokenizer, Template: e.Template, Estimator: e.Estimator,
		Columns: s.progress.Columns, Options: s.progress.Options, Shards: s.progress.Shards}
	for _, sh := range m.Shards {
		m.Rows += sh.Rows
		m.Rollouts += sh.Rollouts
		m.Groups += sh.Groups
		m.Tokens += sh.Tokens
		m.Trained += sh.Trained
	}
	if err := s.digests(); err != nil {
		return err
	}
	if err := writeJSON(s.path(ManifestName), m); err != nil {
		return err
	}
	return remove(s.path(ProgressName))
}

// digests takes the file digests from the first shard where every shard was
// written by an earlier run.
func (s *Set) digests() error {
	m := &s.manifest
	if len(m.Shards) == 0 || m.Tokenizer != "" && m.Template != "" {
		return nil
	}
	r, err := export.Open(s.path(m.Shards[0].File))
	if err != nil {
		return err
	}
	m.Tokenizer, m.Template = r.Info().Tokenizer, r.Info().Template
	return r.Close()
}

// Manifest returns what Close wrote.
func (s *Set) Manifest() Manifest { return s.manifest }
