// Package atomic writes files that are always absent, unchanged or complete: under a temporary
// name, flushed to disk, then moved into place.
package atomic

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/turnpack/turnpack/rollout"
)

// TempSuffix ends the name of a temporary file.
const TempSuffix = ".partial"

// ErrExists is the cause in the error of an output that already exists.
var ErrExists = errors.New("the output exists")

// File is a temporary file that Commit moves to its path.
type File struct {
	f     *os.File
	path  string
	force bool
	done  bool
}

// Create starts the file path and removes temporary files that killed writers of path left. An
// existing output is refused unless force is set.
func Create(path string, force bool) (*File, error) {
	where := rollout.Where{File: path}
	if path == "" {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the output has no name").WithFix("give a path")
	}
	switch info, err := os.Lstat(path); {
	case err == nil && info.IsDir():
		return nil, rollout.Errorf(rollout.KindInput, where, "the output is a folder").WithFix("give the path of a file")
	case err == nil && !force:
		return nil, exists(path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, Locate(where, err)
	}
	Sweep(filepath.Dir(path), filepath.Base(path))
	f, err := createTemp(path)
	if err != nil {
		return nil, Locate(where, err)
	}
	return &File{f: f, path: path, force: force}, nil
}

func exists(path string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "%w", ErrExists).WithFix("choose another name or force it")
}

// Write appends b.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.f.Write(b)
	if err != nil {
		err = Locate(rollout.Where{File: f.path}, err)
	}
	return n, err
}

// Commit flushes the file and moves it to its path; on an error it removes it. Without force it
// never replaces a file: of several writers of one path the first to commit wins and the others
// get ErrExists.
func (f *File) Commit() error {
	if f.done {
		return nil
	}
	if err := f.finish(); err != nil {
		return errors.Join(Locate(rollout.Where{File: f.path}, err), f.Abort())
	}
	f.done = true
	return nil
}

func (f *File) finish() error {
	if err := f.f.Sync(); err != nil {
		return err
	}
	// Without force an existing file is never replaced.
	move := link
	if f.force {
		move = os.Rename
	}
	if err := publish(f.f, func() error { return move(f.f.Name(), f.path) }); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(f.path))
}

// link gives the file from the name to, or fails if that exists. A hard link does both in one
// step. If the file system has no links, a claim on the name keeps other writers out.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if !errors.Is(err, fs.ErrExist) {
		err = claimed(from, to)
	}
	if errors.Is(err, fs.ErrExist) {
		return exists(to)
	}
	return err
}

// claimed gives the file from the name to, which must not exist, while it holds a claim on it.
func claimed(from, to string) error {
	name := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".0"+TempSuffix)
	claim, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) && removeIdle(name) { // left by a killed writer
		claim, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	}
	if err != nil {
		return err
	}
	if !Hold(claim) { // another writer took the claim for a killed writer's and replaced it
		_ = claim.Close()
		return fs.ErrExist
	}
	defer func() { _ = errors.Join(os.Remove(name), claim.Close()) }()
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// Abort removes the temporary file; after Commit it does nothing.
func (f *File) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	_ = f.f.Close()
	return Remove(f.f.Name())
}

// WriteFile writes data to path as a File does.
func WriteFile(path string, data []byte, force bool) error {
	f, err := Create(path, force)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}

// Remove removes a file; if it does not exist, that is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Locate(rollout.Where{File: path}, err)
	}
	return nil
}

// Digest returns the size of a file and the SHA-256 of its bytes in hex.
func Digest(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	size, err = io.Copy(h, f)
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// SyncDir flushes dir, so that a rename in it survives a power loss.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // the file system does not flush folders
	}
	return errors.Join(err, d.Close())
}

// Locate adds place, kind and remedy to a file system error.
func Locate(where rollout.Where, err error) error {
	var located *rollout.Error
	if errors.As(err, &located) {
		return err
	}
	e := rollout.Errorf(rollout.KindInput, where, "write: %w", err)
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return e.WithFix("free space or choose another folder, then run again; nothing incomplete was left under the output's name")
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return e.WithFix("make the folder writable or choose another")
	case errors.Is(err, fs.ErrNotExist):
		return e.WithFix("make the folder first")
	case errors.Is(err, syscall.ENOTDIR):
		return e.WithFix("choose a path whose parent is a folder")
	}
	return e
}
