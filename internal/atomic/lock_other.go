//go:build !unix

package atomic

import (
	"errors"
	"os"
	"runtime"
)

func hold(*os.File) bool { return true }

func lock(*os.File) error { return nil }

// claim: after a crash the file has to be removed by hand.
func claim(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
}

func release(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// removeIdle removes a file that nobody has open, where the system sees to that.
func removeIdle(path string) bool { return runtime.GOOS == "windows" && os.Remove(path) == nil }

func publish(f *os.File, place func() error) error {
	if err := f.Close(); err != nil {
		return err
	}
	return place()
}
