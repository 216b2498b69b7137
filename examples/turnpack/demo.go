package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/place"
	"github.com/turnpack/turnpack/examples/turnpack/internal/show"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize/embedded"
)

//go:embed demo/dumps
var demoDumps embed.FS

type demoCmd struct {
	Out string `help:"Folder for the sample dump and the batch." default:"batch/demo"`
}

// Run converts the sample dump with the embedded model and prints its first row.
func (c *demoCmd) Run(p *cli.Program) error {
	if _, err := os.Stat(filepath.Join(c.Out, cli.RecordName)); err == nil {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: c.Out}, "the folder holds a batch of convert, which the demo would replace").WithFix("choose another --out")
	}
	dumps := filepath.Join(c.Out, "dumps")
	if err := copyDumps(dumps); err != nil {
		return err
	}
	model, err := embedded.Model()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "turnpack convert --model <embedded> --in %s --out %s\n\n", rollout.Printable(dumps), rollout.Printable(c.Out))
	src, err := traj.NewSource([]string{dumps}, traj.Options{})
	if err != nil {
		return err
	}
	convert := convertCmd{}
	if err := kong.ApplyDefaults(&convert); err != nil {
		return err
	}
	convert.Out, convert.Force = c.Out, true
	s, _, err := convert.convert(p, model, src, c.Out)
	if err != nil {
		return err
	}
	path := filepath.Join(c.Out, s.Output)
	s.Output = ""
	if err := s.table(p.Out); err != nil {
		return err
	}
	rows, _, err := export.ReadAll(path)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	look := showCmd{Color: "auto"}
	if err := (show.Printer{By: "mask", Color: look.color(p.Out), Width: look.width(p.Out)}).Row(p.Out, model, &rows[0]); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "\nThe batch: %s\n", rollout.Printable(path))
	return nil
}

func copyDumps(dir string) error {
	if _, err := place.MakeFolder(dir); err != nil {
		return err
	}
	entries, err := fs.ReadDir(demoDumps, "demo/dumps")
	if err != nil {
		return err
	}
	for _, e := range entries {
		b, err := demoDumps.ReadFile("demo/dumps/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), b, 0o666); err != nil {
			return err
		}
	}
	return nil
}
