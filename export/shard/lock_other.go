//go:build !unix

package shard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// A lock is a file that must not exist before. After a crash it has to be
// removed by hand.
type lock struct{ f *os.File }

func acquire(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, busy(dir)
	}
	if err != nil {
		return nil, atomic.Locate(rollout.Where{File: dir}, err)
	}
	return &lock{f}, nil
}

func (l *lock) release() error {
	return errors.Join(l.f.Close(), os.Remove(l.f.Name()))
}
