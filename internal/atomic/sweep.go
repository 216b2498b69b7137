package atomic

import (
	"os"
	"path/filepath"
	"strings"
)

// Sweep removes the files that killed writers of name, or of any name where that is
// "", left in folder dir, and returns their names. One that a live writer holds stays,
// and so does each where the system cannot tell.
func Sweep(dir, name string) (removed []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what cannot be listed cannot be written to either, and that tells more
	}
	for _, e := range entries {
		if e.Type().IsRegular() && isTemp(e.Name(), name) && removeIdle(filepath.Join(dir, e.Name())) {
			removed = append(removed, e.Name())
		}
	}
	return removed
}

// isTemp reports whether file is a name that createTemp gives for name.
func isTemp(file, name string) bool {
	file, partial := strings.CutSuffix(file, TempSuffix)
	dot := strings.LastIndexByte(file, '.')
	if !partial || dot < 1 || file[0] != '.' {
		return false
	}
	of, digits := file[1:dot], file[dot+1:]
	return digits != "" && strings.Trim(digits, "0123456789") == "" && of != "" && (name == "" || of == name)
}

// createTemp makes the temporary file of path, which it holds as long as it is open.
func createTemp(path string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+TempSuffix)
		if err != nil || Hold(f) {
			return f, err
		}
		_ = f.Close() // a sweep came in between, and removes it
	}
}
