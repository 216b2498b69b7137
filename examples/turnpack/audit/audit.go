// Package audit holds the subcommands audit and diff.
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/export/audit"
)

// ModelLoader makes the facts about a tokenizer from a model folder and the chat
// template to take in it ("" for its own choice). The
// command that wires this package gives one, so that it needs no tokenizer of
// its own.
type ModelLoader func(dir, template string) (*audit.Model, error)

const auditAbout = `Reads training batches by anyone (Parquet and Arrow of this module, slime .pt,
prime-rl .bin, SkyRL- and verl-style Parquet, Parquet and JSON Lines with ids
and a mask) and says what would crash a trainer or train wrongly. Exit status 1
means findings of the --fail-on severity or worse, 2 that the audit could not be
made.`

type auditFlags struct {
	Files    []string `arg:"" optional:"" name:"batch" help:"Batch files, or folders of them."`
	Model    string   `help:"Model folder: also looks for what only a tokenizer shows." placeholder:"FOLDER"`
	Template string   `help:"With --model: chat template of the folder by its name, or a file in its place." placeholder:"NAME"`
	JSON     bool     `name:"json" help:"Write the report as JSON."`
	Examples int      `help:"Places shown per rule." default:"3" placeholder:"N"`
	FailOn   string   `name:"fail-on" help:"Severity that makes the exit status 1: error, warn or info." default:"error" placeholder:"SEVERITY"`
}

// Main runs "audit" and returns the exit code.
func Main(ctx context.Context, args []string, load ModelLoader, stdout, stderr io.Writer) int {
	var f auditFlags
	code, done := cli.Parse("audit", auditAbout, &f, args, stdout, stderr)
	if done {
		return code
	}
	limits := map[string]audit.Severity{"info": audit.Info, "warn": audit.Warn, "error": audit.Error}
	limit, known := limits[f.FailOn]
	switch {
	case len(f.Files) == 0:
		return cli.Mistake("audit", stderr, errors.New("no batch file is named"))
	case f.Template != "" && f.Model == "":
		return cli.Mistake("audit", stderr, errors.New("--template is of a model folder: name one with --model"))
	case !known:
		return cli.Mistake("audit", stderr, fmt.Errorf("--fail-on is %q, expected error, warn or info", f.FailOn))
	}
	o := audit.Options{Examples: f.Examples}
	if f.Model != "" {
		var err error
		if o.Model, err = load(f.Model, f.Template); err != nil {
			fmt.Fprintln(stderr, "turnpack audit:", cli.Reason(err))
			return cli.Usage
		}
	}
	worst, err := run(ctx, f.Files, o, f.JSON, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "turnpack audit:", cli.Reason(err))
		return cli.Usage
	}
	if worst >= limit {
		return cli.Failed
	}
	return cli.OK
}

// run audits files and prints the report.
func run(ctx context.Context, files []string, o audit.Options, asJSON bool, stdout io.Writer) (audit.Severity, error) {
	files, err := cli.Batches(files)
	if err != nil {
		return 0, err
	}
	r, err := audit.Run(ctx, files, o)
	if err != nil {
		return 0, err
	}
	if asJSON {
		return r.Worst(), r.JSON(stdout)
	}
	return r.Worst(), r.Table(stdout)
}
