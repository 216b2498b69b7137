//go:build !unix

package atomic

import (
	"os"
	"runtime"
)

func hold(*os.File) bool { return true }

// removeIdle removes a file that nobody has open, where the system sees to that.
func removeIdle(path string) bool { return runtime.GOOS == "windows" && os.Remove(path) == nil }

func publish(f *os.File, place func() error) error {
	if err := f.Close(); err != nil {
		return err
	}
	return place()
}
