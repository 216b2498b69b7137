// Package data implements "swerl data", which writes the input files of rollouts,
// evaluations and pivot training.
package data

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/internal/jsonscan"
)

const usage = `swerl data swe   --in ROWS  --out DIR   tasks of SWE-Gym and SWE-bench rows
swerl data pivot --in DUMPS --out DIR   single steps of recorded trajectories
`

// Main runs "swerl data" with the arguments after it.
func Main(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "swe":
			return swe(ctx, args[1:], out)
		case "pivot":
			return pivots(ctx, args[1:], out)
		}
	}
	return fmt.Errorf("expected swe or pivot\n%s", strings.TrimSpace(usage))
}

// paths is a flag that may be repeated, or hold several values with commas.
type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }

func (p *paths) Set(text string) error {
	*p = append(*p, strings.Split(text, ",")...)
	return nil
}

// parse parses fs with the common flags --in and --out, and returns their values.
func parse(fs *flag.FlagSet, args []string, out io.Writer) (in []string, dir string, err error) {
	var from paths
	fs.Var(&from, "in", "`file` or folder to read; several with commas or repeated")
	to := fs.String("out", "", "`folder` to write")
	fs.SetOutput(out)
	if err := fs.Parse(args); err != nil {
		return nil, "", err
	}
	if len(from) == 0 || *to == "" || fs.NArg() > 0 {
		return nil, "", errors.New("--in and --out are needed, and nothing beside flags")
	}
	return from, *to, os.MkdirAll(*to, 0o755)
}

// files maps the names of files to write to their contents.
type files map[string][]byte

// add appends v to a file as a line of JSON.
func (f files) add(name string, v any) error {
	line, err := jsonscan.Marshal(v)
	f[name] = append(append(f[name], line...), '\n')
	return err
}

func (f files) write(dir string, force bool) error {
	names := slices.Sorted(maps.Keys(f))
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil && !force {
			return fmt.Errorf("%s is there already: name another folder, or give --force", filepath.Join(dir, name))
		}
	}
	for _, name := range names {
		if err := atomic.WriteFile(filepath.Join(dir, name), f[name], force); err != nil {
			return err
		}
	}
	return nil
}
