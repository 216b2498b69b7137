package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Options says how a folder is divided and written. The zero value writes
// part-00000.parquet, part-00001.parquet, … of about 1 GiB.
type Options struct {
	// Export applies to every shard. Its Force is not used.
	Export export.Options
	// RowsPerShard, BytesPerShard and GroupsPerShard end a shard at the next GRPO
	// group; 0 is no limit. With none of them, BytesPerShard is 1 GiB. Bytes are
	// counted by row groups that are done. GroupsPerShard cuts exactly: a trainer
	// that wants one file a training step takes the step's number of groups.
	RowsPerShard   int
	BytesPerShard  int64
	GroupsPerShard int
	// Name gives the name of shard i; nil is part-00000.parquet and so on, or
	// .arrow for Arrow formats.
	Name func(i int) string
	// Force starts the folder anew: shards named by an old manifest or an
	// unfinished run are removed first.
	Force bool
}

// Validate reports all faults of o at once.
func (o *Options) Validate() error {
	faults := []error{o.Export.Validate()}
	for name, v := range map[string]int64{"RowsPerShard": int64(o.RowsPerShard), "BytesPerShard": o.BytesPerShard, "GroupsPerShard": int64(o.GroupsPerShard)} {
		if v < 0 {
			faults = append(faults, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options." + name}, "found %d, expected 0 (no limit) or more", v))
		}
	}
	return errors.Join(faults...)
}

const defaultBytes = 1 << 30

func (o *Options) name(i int) string {
	switch {
	case o.Name != nil:
		return o.Name(i)
	case o.Export.Format == export.FormatParquet:
		return fmt.Sprintf("part-%05d.parquet", i)
	}
	return fmt.Sprintf("part-%05d.arrow", i)
}

// digest names what decides the bytes of the set besides the rows.
func (o *Options) digest() string {
	e := o.Export
	columns := "auto"
	if e.Columns != nil {
		columns = e.Columns.String()
	}
	keys := slices.Sorted(func(yield func(string) bool) {
		for k, v := range e.Metadata {
			if !yield(k + "=" + v) {
				return
			}
		}
	})
	trace := ""
	if e.Trace { // absent otherwise, so that earlier manifests keep their digest
		trace = "|trace"
	}
	text := fmt.Sprintf("1|%d|%s|%v|%v|%v|%q|%q|%q|%q|%d|%d|%d|%d|%d|%d|%d|%s", e.Format, columns, e.KeepTail, e.KeepUntrained, e.UnknownStatus,
		e.Tokenizer, e.Template, e.Estimator, keys, e.ZstdLevel, e.GroupTokens, e.GroupRows, e.PageBytes, o.RowsPerShard, o.BytesPerShard, o.GroupsPerShard, o.name(0)) + trace
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

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

// Create starts or goes on with the folder dir, which must exist. A complete
// folder, or one begun with other options, is refused unless Options.Force is
// set; so is a folder that another writer has open, in any case.
func Create(dir string, o Options) (*Set, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.RowsPerShard == 0 && o.BytesPerShard == 0 && o.GroupsPerShard == 0 {
		o.BytesPerShard = defaultBytes
	}
	l, err := acquire(dir)
	if err != nil {
		return nil, err
	}
	s := &Set{dir: dir, opts: o, lock: l, seen: map[[16]byte]struct{}{}}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return s, nil
}

func busy(dir string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "another writer has the folder open").
		WithFix("wait for it or choose another folder; if none runs, remove %s", lockName)
}

// Resumed is the number of shards that an earlier run has finished.
func (s *Set) Resumed() int { return s.resumed }

func (s *Set) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Set) begin() error {
	digest := s.opts.digest()
	var old Manifest
	complete, err := readJSON(s.path(ManifestName), &old)
	if err != nil && !s.opts.Force {
		return err
	}
	var p progress
	unfinished, err := readJSON(s.path(ProgressName), &p)
	if err != nil && !s.opts.Force {
		return err
	}
	if err := s.sweep(); err != nil {
		return err
	}
	where := rollout.Where{File: s.dir}
	switch {
	case s.opts.Force:
		if err := s.clear(old.Shards, p.Shards); err != nil {
			return err
		}
	case complete && !(unfinished && p.Options == digest):
		return rollout.Errorf(rollout.KindInput, where, "the folder is complete").WithFix("choose another folder or set Options.Force")
	case unfinished && p.Options != digest:
		return rollout.Errorf(rollout.KindInput, where, "the folder was begun with other options").
			WithFix("run with the options it was begun with, choose another folder or set Options.Force")
	case unfinished:
		// Killed between manifest and the end: the manifest is written again.
		if err := remove(s.path(ManifestName)); err != nil {
			return err
		}
		s.progress = p
		for i := range p.Shards {
			if err := p.Shards[i].verify(s.dir); err != nil {
				s.progress.Shards = p.Shards[:i]
				break
			}
		}
		s.resumed = len(s.progress.Shards)
	default:
		if _, err := os.Lstat(s.path(s.opts.name(0))); err == nil {
			return rollout.Errorf(rollout.KindInput, where, "%s is there and belongs to no run", s.opts.name(0)).
				WithFix("choose another folder, or set Options.Force to replace it")
		}
	}
	s.progress.Options = digest
	return writeJSON(s.path(ProgressName), s.progress)
}

// sweep removes what a killed run was writing.
func (s *Set) sweep() error {
	left, err := filepath.Glob(s.path(".*" + atomic.TempSuffix))
	if err != nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: s.dir}, "list: %w", err)
	}
	for _, path := range left {
		if err := remove(path); err != nil {
			return err
		}
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return atomic.Locate(rollout.Where{File: path}, err)
	}
	return nil
}

func (s *Set) clear(sets ...[]Shard) error {
	// The manifest goes first: without it the folder is not taken for complete.
	for _, name := range []string{ManifestName, ProgressName} {
		if err := remove(s.path(name)); err != nil {
			return err
		}
	}
	for _, shards := range sets {
		for _, sh := range shards {
			if err := remove(s.path(filepath.Base(sh.File))); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write checks s and adds it to the shard that is open, or begins the next one.
func (s *Set) Write(row rollout.Sample) error {
	if s.err == nil && s.done {
		return export.ErrClosed
	}
	if s.err == nil {
		s.err = s.write(&row)
	}
	return s.err
}

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
	c.checksum(row)
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
	if s.done {
		return s.err
	}
	s.done = true
	if s.err == nil {
		s.err = s.complete()
	}
	return errors.Join(s.err, s.leave())
}

// Abort drops the shard that is open and frees the folder; the shards that are
// done stay for a later run. After Close it does nothing.
func (s *Set) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.leave()
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

// checksum adds everything that decides the row's bytes.
func (c *current) checksum(s *rollout.Sample) {
	b := c.buf[:0]
	le := binary.LittleEndian
	b = fmt.Appendf(b, "%q%q%d %d %v %d %d %d %x %x %v %q%q%d %x%q", s.Rollout, s.Group, s.RolloutIndex, s.SampleIndex, s.IsLast, s.FirstStep, s.LastStep,
		s.PromptLen, math.Float64bits(s.Reward), math.Float64bits(s.OutcomeReward), s.Status, s.FinishReason, s.MaskReason, s.RolloutMaskSum,
		math.Float32bits(s.Temperature), s.Metadata)
	for _, p := range []*float64{s.StepReward, s.Advantage} {
		if p != nil {
			b = le.AppendUint64(append(b, 1), math.Float64bits(*p))
		}
		b = append(b, 0)
	}
	for _, ints := range [][]int32{s.IDs, s.Version} {
		b = le.AppendUint64(b, uint64(len(ints)))
		for _, v := range ints {
			b = le.AppendUint32(b, uint32(v))
		}
	}
	for _, floats := range [][]float32{s.Weight, s.Logprob, s.Credit} {
		b = le.AppendUint64(b, uint64(len(floats)))
		for _, v := range floats {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	}
	_, _ = c.crc.Write(b)
	c.buf = b
}
