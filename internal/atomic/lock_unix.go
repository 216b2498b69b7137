//go:build unix

package atomic

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Hold locks an open file until it is closed or the process ends. It returns false if another
// process has locked or removed it. Without support for locks it returns true: Sweep then
// removes nothing, since it needs a lock.
func Hold(f *os.File) bool { return !errors.Is(Lock(f), syscall.EWOULDBLOCK) && hasName(f) }

// Lock is Hold without the check that the file still has its name. It returns the reason if the
// lock fails, such as a file system without locks.
func Lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// Claim creates and locks the file path, which stands for something that one process may use at
// a time. It returns fs.ErrExist if another process has it. [Release] gives it back. Unlike
// Hold, it fails on a file system without locks.
func Claim(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		err = Lock(f)
		if err == nil && hasName(f) {
			return f, nil
		}
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fs.ErrExist
		}
		if err != nil {
			return nil, err
		} // otherwise the previous holder removed the file between our open and lock
	}
}

// Release removes a file that Claim created.
func Release(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }

func hasName(f *os.File) bool {
	held, err1 := f.Stat()
	now, err2 := os.Lstat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(held, now)
}

// removeIdle removes a file that no process has locked.
func removeIdle(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return Lock(f) == nil && hasName(f) && os.Remove(path) == nil
}

// publish calls place, then closes f. In this order no other process can lock the file in
// between.
func publish(f *os.File, place func() error) error {
	return errors.Join(place(), f.Close())
}
