package atomic

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// heldName is the file whose lock marks a folder as in use.
const heldName = ".held"

// Folder is a temporary folder, marked as in use until it is removed or its process ends.
type Folder struct {
	Path string
	held *os.File
}

// TempFolder makes a folder whose name starts with prefix in dir ("" for the system's temporary
// folder). It first removes such folders of killed processes and returns their names.
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
	Hold(held) // cannot fail: the file is not known to anyone else
	return &Folder{path, held}, removed, nil
}

// Remove removes the folder and its contents.
func (f *Folder) Remove() error {
	return errors.Join(f.held.Close(), os.RemoveAll(f.Path))
}

// sweepFolders removes folders that are not in use. It keeps a folder without the file
// heldName, which may not come from TempFolder.
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
