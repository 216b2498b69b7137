package shard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Create starts or goes on with the folder dir, which must exist. A complete
// folder (export.ErrComplete), one begun with other options (export.ErrOtherRun) and
// one that holds files of no run (export.ErrExists) are refused unless Options.Force
// is set; so is a folder that another writer has open (export.ErrLocked), in any case.
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
	return rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "%w", export.ErrLocked).
		WithFix("wait for it or choose another folder; if none runs, remove %s", lockName)
}

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
	atomic.Sweep(s.dir, "")
	where := rollout.Where{File: s.dir}
	switch {
	case s.opts.Force:
		if err := s.clear(old.Shards, p.Shards); err != nil {
			return err
		}
	case complete && !(unfinished && p.Options == digest):
		return rollout.Errorf(rollout.KindInput, where, "%w", export.ErrComplete).WithFix("choose another folder or set Options.Force")
	case unfinished && p.Options != digest:
		return rollout.Errorf(rollout.KindInput, where, "%w", export.ErrOtherRun).
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
			return rollout.Errorf(rollout.KindInput, where, "%w: %s is there and belongs to no run", export.ErrExists, s.opts.name(0)).
				WithFix("choose another folder, or set Options.Force to replace it")
		}
	}
	s.progress.Options = digest
	return writeJSON(s.path(ProgressName), s.progress)
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
