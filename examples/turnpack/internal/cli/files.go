package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
)

// Batches replaces each folder in paths by the batch files in it, in the order of their
// names.
func Batches(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		if info, err := os.Stat(p); err != nil || !info.IsDir() {
			out = append(out, p) // opening it will report the error
			continue
		}
		n := len(out)
		for _, pattern := range []string{"*.parquet", "*.arrow", "*.pt", "data/*.parquet", "data/*.arrow", "rollouts/step_*/rank_*.bin", "rank_*.bin"} {
			found, err := fs.Glob(os.DirFS(p), pattern) // os.DirFS, so that the folder's name is not a pattern
			if err != nil {
				return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: p}, "cannot be listed: %w", err)
			}
			for _, name := range found {
				out = append(out, filepath.Join(p, filepath.FromSlash(name)))
			}
		}
		if len(out) == n {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: p}, "the folder holds no batch").WithFix("name a folder that 'turnpack convert' wrote, or a file")
		}
	}
	return out, nil
}

// One returns path, or the one batch file in it if path is a folder.
func One(path string) (string, error) {
	all, err := Batches([]string{path})
	if err != nil {
		return "", err
	}
	if len(all) > 1 {
		names := all[:min(len(all), 4)]
		return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "the folder holds %d batch files", len(all)).WithFix("name one: %s", strings.Join(names, ", "))
	}
	return all[0], nil
}

// RecordName is the file next to a batch that records how it was made. It is hidden, so
// that trainers and dump readers ignore it.
const RecordName = ".turnpack.json"

// RecordOf reads the record of the batch that file belongs to into made. It returns false if
// there is none, as of batches of other programs.
func RecordOf(file string, made any) (bool, error) {
	dir := filepath.Dir(file)
	for range 3 { // files of a set are in a subfolder of the batch
		if text, err := os.ReadFile(filepath.Join(dir, RecordName)); err == nil {
			if err := json.Unmarshal(text, made); err != nil {
				return false, rollout.Errorf(rollout.KindFormat, rollout.Where{File: file}, "%s beside it cannot be read: %w", RecordName, err)
			}
			return true, nil
		}
		dir = filepath.Dir(dir)
	}
	return false, nil
}

// Sweep removes leftovers of killed runs for the output name, or for any output if name
// is "", from folder dir, and prints what it removed.
func Sweep(w io.Writer, dir, name string) {
	Swept(w, dir, atomic.Sweep(dir, name))
}

// Swept prints the files removed from folder dir, if any.
func Swept(w io.Writer, dir string, gone []string) {
	if len(gone) > 0 {
		fmt.Fprintf(w, "removed what earlier runs that were killed left in %s: %s\n", dir, strings.Join(gone, ", "))
	}
}
