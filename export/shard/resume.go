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

// Create starts or resumes the folder dir, which must exist. Unless Options.Force is set, it
// refuses a complete folder (export.ErrComplete), one started with other options
// (export.ErrOtherRun) and one with files of no run (export.ErrExists). It always refuses a
// folder that another writer has open (export.ErrLocked).
func Create(dir string, o Options) (*Set, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "dir"}, "the folder has no name").WithFix(`give its path, "." for the working directory`)
	}
	if o.RowsPerShard == 0 && o.BytesPerShard == 0 && o.GroupsPerShard == 0 && o.Maker == nil {
		o.BytesPerShard = defaultBytes
	}
	l, err := claim(dir)
	if err != nil {
		return nil, err
	}
	s := &Set{dir: dir, opts: o, lock: l}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.journal.close(), atomic.Release(l))
	}
	return s, nil
}

// claim locks a folder against a second writer.
func claim(dir string) (*os.File, error) {
	f, err := atomic.Claim(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrExist) {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "%w", export.ErrLocked).
			WithFix("wait for it or choose another folder; if none runs, remove %s", lockName)
	}
	if err != nil {
		return nil, atomic.Locate(rollout.Where{File: dir}, err)
	}
	return f, nil
}

func (s *Set) begin() error {
	o := &s.opts
	digest := o.digest()
	var old Manifest
	complete, err := readJSON(s.path(ManifestName), &old)
	if err != nil && !o.Force {
		return err
	}
	var p progress
	unfinished, err := readJSON(s.path(ProgressName), &p)
	if err != nil && !o.Force {
		return err
	}
	atomic.Sweep(s.dir, "")
	if o.Maker == nil {
		atomic.Sweep(filepath.Dir(s.path(filepath.FromSlash(o.name(0)))), "")
	}
	where := rollout.Where{File: s.dir}
	if complete && !unfinished && o.Source != "" && old.Source == o.Source && old.Options == digest {
		// The same job again: all its shards are finished.
		unfinished, p = true, progress{Source: old.Source, Options: old.Options, Columns: old.Columns, Shards: old.Shards}
	}
	same := unfinished && p.Options == digest && p.Source == o.Source
	switch {
	case o.Force:
		if err := s.clear(old.Shards, p.Shards); err != nil {
			return err
		}
	case complete && !same:
		return rollout.Errorf(rollout.KindInput, where, "%w", export.ErrComplete).WithFix("choose another folder, or replace what is there (Options.Force, convert --force)")
	case unfinished && p.Options != digest:
		return rollout.Errorf(rollout.KindInput, where, "%w", export.ErrOtherRun).
			WithFix("run with the options it was begun with, choose another folder, or replace what is there (Options.Force, convert --force)")
	case unfinished && !same:
		return rollout.Errorf(rollout.KindInput, where, "%w, or of another input", export.ErrOtherRun).
			WithFix("give the input of the first run, choose another folder, or replace what is there (Options.Force, convert --force)")
	case unfinished:
		s.resume(p)
	default:
		if err := atomic.Remove(s.path(stateName)); err != nil {
			return err
		}
		if _, err := os.Lstat(s.path(filepath.FromSlash(o.name(0)))); err == nil {
			return rollout.Errorf(rollout.KindInput, where, "%w: %s is there and belongs to no run", export.ErrExists, o.name(0)).
				WithFix("choose another folder, or replace what is there (Options.Force, convert --force)")
		}
	}
	s.progress.Options, s.progress.Source = digest, o.Source
	if err := s.openJournal(); err != nil {
		return err
	}
	if err := writeJSON(s.path(ProgressName), s.progress); err != nil {
		return err
	}
	// If the earlier run was killed after it wrote the manifest, Close writes it again.
	return atomic.Remove(s.path(ManifestName))
}

// resume keeps the shards of p up to the first that does not match its description.
func (s *Set) resume(p progress) {
	s.progress = p
	for i := range p.Shards {
		if err := p.Shards[i].verify(s.dir); err != nil {
			s.progress.Shards, s.progress.Making = p.Shards[:i], true
			break
		}
	}
	s.resumed = len(s.progress.Shards)
}

func (s *Set) clear(sets ...[]Shard) error {
	// Remove the manifest first, so that the folder no longer counts as complete.
	for _, name := range []string{ManifestName, ProgressName, journalName, stateName} {
		if err := atomic.Remove(s.path(name)); err != nil {
			return err
		}
	}
	for _, shards := range sets {
		for _, sh := range shards {
			for _, f := range sh.Files() {
				if err := s.removeFile(f.File); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeFile removes a file of the set and the folders that it leaves empty.
func (s *Set) removeFile(name string) error {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return nil
	}
	if err := atomic.Remove(s.path(name)); err != nil {
		return err
	}
	s.removeEmptyFolders(name)
	return nil
}

// removeEmptyFolders removes the folders above the file name that are empty.
func (s *Set) removeEmptyFolders(name string) {
	for up := filepath.Dir(filepath.FromSlash(name)); up != "." && os.Remove(s.path(up)) == nil; up = filepath.Dir(up) {
	}
}
