//go:build unix

package atomic

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hold locks a file that is being written until it is closed, however its process
// ends. It reports whether the file is still there. A file system without locks
// keeps sweeps away, which need one.
func hold(f *os.File) bool { return !errors.Is(lock(f), syscall.EWOULDBLOCK) && named(f) }

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// claim, unlike hold, refuses a file system without locks.
func claim(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		err = lock(f)
		if err == nil && named(f) {
			return f, nil
		}
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fs.ErrExist
		}
		if err != nil {
			return nil, err
		} // else the holder before removed the file between our open and lock
	}
}

func release(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }

func named(f *os.File) bool {
	held, err1 := f.Stat()
	now, err2 := os.Lstat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(held, now)
}

// removeIdle removes a file that nobody holds.
func removeIdle(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return lock(f) == nil && named(f) && os.Remove(path) == nil
}

// publish places a file and closes it, in this order: nobody else ever holds it.
func publish(f *os.File, place func() error) error {
	return errors.Join(place(), f.Close())
}
