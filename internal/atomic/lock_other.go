//go:build !unix

package atomic

import (
	"errors"
	"os"
	"runtime"
)

// Hold always returns true.
func Hold(*os.File) bool { return true }

// Lock always returns nil.
func Lock(*os.File) error { return nil }

// Claim creates the file path and fails like os.OpenFile if it exists. After a crash the file
// must be removed by hand.
func Claim(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
}

// Release removes a file that Claim created.
func Release(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// removeIdle removes a file that is not open, on systems that refuse to remove an open one.
func removeIdle(path string) bool { return runtime.GOOS == "windows" && os.Remove(path) == nil }

func publish(f *os.File, place func() error) error {
	if err := f.Close(); err != nil {
		return err
	}
	return place()
}
