package atomic

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// heldName is the file by which a folder is held.
const heldName = ".held"

// Folder is a temporary folder that is held until it is removed, however its
// process ends.
type Folder struct {
	Path string
	held *os.File
}

// TempFolder makes a folder below dir, "" for the system's folder for temporary
// files, whose name begins with prefix, and removes what killed processes left of
// such. It returns the names of those.
func TempFolder(dir, prefix string) (*Folder, []string, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	removed := sweepFolders(dir, prefix)
	path, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return nil, removed, Locate(rollout.Where{File: dir}, err)
	}
	held, err := os.Create(filepath.Join(path, heldName))
	if err != nil {
		return nil, removed, errors.Join(Locate(rollout.Where{File: path}, err), os.RemoveAll(path))
	}
	Hold(held) // nobody else knows of it
	return &Folder{path, held}, removed, nil
}

// Remove removes the folder with all that is in it.
func (f *Folder) Remove() error {
	return errors.Join(f.held.Close(), os.RemoveAll(f.Path))
}

// sweepFolders removes folders that nobody holds. One without the file that holds
// it is not known to be of a TempFolder, and stays.
func sweepFolders(dir, prefix string) (removed []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && removeIdle(filepath.Join(path, heldName)) && os.RemoveAll(path) == nil {
			removed = append(removed, e.Name())
		}
	}
	return removed
}
