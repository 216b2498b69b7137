package atomic

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// Sweep removes the temporary files that killed writers of name left in dir, or of any name if
// name is "", and returns their names. It keeps a file that a live writer has locked, and all
// files if the system has no locks.
func Sweep(dir, name string) (removed []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // writing to the folder will fail with a better error
	}
	for _, e := range entries {
		if e.Type().IsRegular() && isTemp(e.Name(), name) && removeIdle(filepath.Join(dir, e.Name())) {
			removed = append(removed, e.Name())
		}
	}
	return removed
}

// isTemp reports whether file is a name that createTemp gives a temporary file of name.
func isTemp(file, name string) bool {
	file, partial := strings.CutSuffix(file, TempSuffix)
	dot := strings.LastIndexByte(file, '.')
	if !partial || dot < 1 || file[0] != '.' {
		return false
	}
	of, digits := file[1:dot], file[dot+1:]
	return digits != "" && strings.Trim(digits, "0123456789") == "" && of != "" && (name == "" || of == name)
}

// createTemp creates the temporary file of path, locked while it is open, with the permissions of
// any new file.
func createTemp(path string) (*os.File, error) {
	for {
		name := fmt.Sprintf(".%s.%d%s", filepath.Base(path), rand.Uint32(), TempSuffix)
		f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil || Hold(f) {
			return f, err
		}
		_ = f.Close() // a sweep locked the file first, and removes it
	}
}
