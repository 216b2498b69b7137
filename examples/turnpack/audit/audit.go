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
type ModelLoader func(dir, template string) (audit.Model, error)

const auditUsage = `audit [flags] FILE|FOLDER...

Reads training batches by anyone (Parquet and Arrow of this module, slime .pt,
prime-rl .bin, SkyRL- and verl-style Parquet, Parquet and JSON Lines with ids
and a mask) and says what would crash a trainer or train wrongly. Exit status 1
means findings of the --fail-on severity or worse, 2 that the audit could not be
made.`

// Main runs "audit" and returns the exit code.
func Main(ctx context.Context, args []string, load ModelLoader, stdout, stderr io.Writer) int {
	fs := cli.New("audit", auditUsage)
	model := fs.String("model", "", "model `FOLDER`: also looks for what only a tokenizer shows")
	template := fs.String("template", "", "with --model: chat template of the folder by `NAME`, or a file in its place")
	asJSON := fs.Bool("json", false, "write the report as JSON")
	examples := fs.Int("examples", 3, "`N` places shown per rule")
	failOn := fs.String("fail-on", "error", "`SEVERITY` that makes the exit status 1: error, warn or info")
	files, code, done := cli.Parse(fs, args, stdout, stderr)
	if done {
		return code
	}
	limits := map[string]audit.Severity{"info": audit.Info, "warn": audit.Warn, "error": audit.Error}
	limit, known := limits[*failOn]
	switch {
	case len(files) == 0:
		return cli.Mistake(fs, stderr, errors.New("no batch file is named"))
	case *template != "" && *model == "":
		return cli.Mistake(fs, stderr, errors.New("--template is of a model folder: name one with --model"))
	case !known:
		return cli.Mistake(fs, stderr, fmt.Errorf("--fail-on is %q, expected error, warn or info", *failOn))
	}
	o := audit.Options{Examples: *examples}
	if *model != "" {
		var err error
		if o.Model, err = load(*model, *template); err != nil {
			fmt.Fprintln(stderr, "turnpack audit:", cli.Reason(err))
			return cli.Usage
		}
	}
	worst, err := run(ctx, files, o, *asJSON, stdout)
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
