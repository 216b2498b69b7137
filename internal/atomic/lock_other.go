//go:build !unix

package atomic

import (
	"errors"
	"os"
	"runtime"
)

// Hold always does.
func Hold(*os.File) bool { return true }

// Lock always does.
func Lock(*os.File) error { return nil }

// Claim makes the file path, or fails as os.OpenFile where it is there: after a crash the file has to be removed by hand.
func Claim(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
}

// Release removes a file that Claim made.
func Release(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// removeIdle removes a file that nobody has open, where the system sees to that.
func removeIdle(path string) bool { return runtime.GOOS == "windows" && os.Remove(path) == nil }

func publish(f *os.File, place func() error) error {
	if err := f.Close(); err != nil {
		return err
	}
	return place()
}
