package export

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/turnpack/turnpack/rollout"
)

// TempSuffix ends the name of a file that is being written. Nothing under such
// a name is complete.
const TempSuffix = ".partial"

// Create starts the file path. The bytes go to a temporary file beside it;
// Close flushes them to the disk, moves the file to its name and flushes the
// folder, so that path is either absent (or the old file) or complete. An
// output that exists is refused unless Options.Force is set.
func Create(path string, o Options) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := newFileSink(path, o.Force)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(s, o)
	if err != nil {
		return nil, errors.Join(err, s.abort())
	}
	return w, nil
}

// fileSink is a temporary file that becomes path.
type fileSink struct {
	*os.File
	path string
}

func newFileSink(path string, force bool) (*fileSink, error) {
	where := rollout.Where{File: path}
	if path == "" {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the output has no name").WithFix("give a path")
	}
	switch info, err := os.Lstat(path); {
	case err == nil && info.IsDir():
		return nil, rollout.Errorf(rollout.KindInput, where, "the output is a folder").WithFix("give the path of a file")
	case err == nil && !force:
		return nil, rollout.Errorf(rollout.KindInput, where, "the output exists").WithFix("choose another name or set Options.Force")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, locate(where, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+TempSuffix)
	if err != nil {
		return nil, locate(where, err)
	}
	return &fileSink{File: f, path: path}, nil
}

func (s *fileSink) Write(b []byte) (int, error) {
	n, err := s.File.Write(b)
	if err != nil {
		err = locate(rollout.Where{File: s.path}, err)
	}
	return n, err
}

func (s *fileSink) commit() error {
	err := s.finish()
	if err != nil {
		return errors.Join(locate(rollout.Where{File: s.path}, err), s.abort())
	}
	return nil
}

func (s *fileSink) finish() error {
	if err := s.Chmod(0o644); err != nil {
		return err
	}
	if err := s.Sync(); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := os.Rename(s.Name(), s.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.path))
}

func (s *fileSink) abort() error {
	_ = s.Close()
	if err := os.Remove(s.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return locate(rollout.Where{File: s.Name()}, err)
	}
	return nil
}

// syncDir makes a rename in dir survive a power loss.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // a file system without folder flushing
	}
	return errors.Join(err, d.Close())
}

// locate turns an error of the file system into one that says what to do.
func locate(where rollout.Where, err error) error {
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

// writeError gives an error of the destination its place and kind.
func writeError(err error) error { return locate(rollout.Where{}, err) }
