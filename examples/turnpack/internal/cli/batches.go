package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// Batches replaces each folder by the batch files in it, in the order of their
// names.
func Batches(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		if info, err := os.Stat(p); err != nil || !info.IsDir() {
			out = append(out, p) // who opens it says what is wrong
			continue
		}
		n := len(out)
		for _, pattern := range []string{"*.parquet", "*.arrow", "*.pt", "data/*.parquet", "data/*.arrow", "rollouts/step_*/rank_*.bin", "rank_*.bin"} {
			found, err := fs.Glob(os.DirFS(p), pattern) // the folder's own name is no pattern
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

// One is path, or the one batch file in the folder path.
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
