//go:build unix

package atomic

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Hold takes an open file for this process until it is closed, however the process
// ends, and reports whether it did: another one may have it, or have removed it. Where the
// system or the file system knows no locks it does, and sweeps, which need one, keep away.
func Hold(f *os.File) bool { return !errors.Is(Lock(f), syscall.EWOULDBLOCK) && named(f) }

// Lock is Hold for a file that may have got another name, with the reason where it did
// not: a file system without locks is one.
func Lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Claim makes the file path, which stands for something that one process at a time may
// have, and locks it: fs.ErrExist says that another one has it. [Release] gives it back.
// Unlike Hold it refuses a file system without locks.
func Claim(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		err = Lock(f)
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

// Release removes a file that Claim made.
func Release(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }

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
	return Lock(f) == nil && named(f) && os.Remove(path) == nil
}

// publish places a file and closes it, in this order: nobody else ever holds it.
func publish(f *os.File, place func() error) error {
	return errors.Join(place(), f.Close())
}
