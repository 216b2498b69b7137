//go:build unix

package shard

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// A lock keeps a second writer out of a folder. The system drops it with the
// process, however that ends.
type lock struct{ f *os.File }

func acquire(dir string) (*lock, error) {
	path := filepath.Join(dir, lockName)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, atomic.Locate(rollout.Where{File: dir}, err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, busy(dir)
			}
			return nil, atomic.Locate(rollout.Where{File: path}, err)
		}
		// The holder before may have removed the file between our open and lock.
		held, err1 := f.Stat()
		now, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(held, now) {
			return &lock{f}, nil
		}
		_ = f.Close()
	}
}

func (l *lock) release() error {
	return errors.Join(os.Remove(l.f.Name()), l.f.Close())
}
