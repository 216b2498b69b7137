package patch

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Tree is a repository in memory: slash-separated path → file. Functions that take a Tree do not
// change it. As in git, empty directories are not part of it.
type Tree map[string]File

// File is one entry of a Tree.
type File struct {
	Content string // for a link, its target
	Mode    string // "", "100755" (executable) or "120000" (a symbolic link)
}

// Values of File.Mode. No mode represents a submodule: patches that touch one do not apply.
const (
	regular    = ""
	executable = "100755"
	link       = "120000"
)

// modeOf returns the File.Mode for a mode in a patch, and false if there is none. As in git, only the
// type and the owner's execute bit count.
func modeOf(m os.FileMode) (string, bool) {
	switch {
	case m>>12 == 0o12:
		return link, true
	case m>>12 != 0o10:
		return regular, false
	case m&0o100 != 0:
		return executable, true
	}
	return regular, true
}

// gitMode returns a mode as git writes it.
func gitMode(mode string) string { return cmp.Or(mode, "100644") }

// Check returns an error for the first path, in sorted order, that no repository can hold: a path that
// leaves the root or belongs to .git, a path below a file or a link, an unknown mode.
func (t Tree) Check() error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := t.checkPath(name); err != nil {
			return err
		}
	}
	return nil
}

func (t Tree) checkPath(name string) error {
	fault := func(format string, args ...any) error {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, format, args...)
	}
	switch {
	case !safe(name) || name == "." || name == "":
		return fault("expected a path inside the repository")
	case slices.Contains(strings.Split(name, "/"), ".git"):
		return fault("the path belongs to git itself")
	case !slices.Contains([]string{regular, executable, link}, t[name].Mode):
		return fault("the mode %q is none of the known ones", t[name].Mode)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if f, there := t[dir]; there {
			return fault("the path is below %s, which is a file of mode %s", dir, gitMode(f.Mode))
		}
	}
	return nil
}

// ReadDir reads a directory without its .git entries. Links are kept as links. An entry that is
// neither a file, a link nor a directory is an error of kind input.
func ReadDir(dir string) (Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "%w", err)
	}
	defer root.Close()
	t := Tree{}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path.Base(name) == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil // the .git file of a worktree or a submodule
		}
		switch {
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			to, err := root.Readlink(name)
			t[name] = File{to, link}
			return err
		case !d.Type().IsRegular():
			return errors.New("is neither a file, a link nor a directory: " + name)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := root.ReadFile(name)
		f := File{Content: string(content)}
		if info.Mode()&0o100 != 0 {
			f.Mode = executable
		}
		t[name] = f
		return err
	})
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: dir}, "read the repository: %w", err)
	}
	return t, nil
}
