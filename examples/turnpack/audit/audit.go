// Package audit holds the subcommands audit and diff.
package audit

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/turnpack/turnpack/export/audit"
)

// ModelLoader makes the facts about a tokenizer from a model folder. The
// command that wires this package gives one, so that it needs no tokenizer of
// its own.
type ModelLoader func(dir string) (audit.Model, error)

// Exit codes.
const (
	exitClean    = 0
	exitFindings = 1
	exitUsage    = 2
)

const auditUsage = `usage: turnpack audit [--model DIR] [--json] [--examples N] [--fail-on error|warn|info] FILE...

Reads training batches by anyone (Parquet and Arrow of this module, slime .pt,
SkyRL- and verl-style Parquet, Parquet and JSON Lines with ids and a mask) and
says what would crash a trainer or train wrongly. Exit code 1 means findings of
the --fail-on severity or worse (default: error).
`

// Main runs "audit" and returns the exit code.
func Main(ctx context.Context, args []string, load ModelLoader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("audit", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, auditUsage) }
	model := fs.String("model", "", "model folder")
	asJSON := fs.Bool("json", false, "write JSON")
	examples := fs.Int("examples", 3, "places shown per rule")
	failOn := fs.String("fail-on", "error", "severity that makes the exit code 1")
	if err := fs.Parse(args); err != nil {
		return exitUsage
	}
	limits := map[string]audit.Severity{"info": audit.Info, "warn": audit.Warn, "error": audit.Error}
	limit, known := limits[*failOn]
	if fs.NArg() == 0 || !known {
		fs.Usage()
		return exitUsage
	}
	o := audit.Options{Examples: *examples}
	if *model != "" {
		if load == nil {
			fmt.Fprintln(stderr, "turnpack audit: --model is not available in this build")
			return exitUsage
		}
		m, err := load(*model)
		if err != nil {
			fmt.Fprintln(stderr, "turnpack audit:", err)
			return exitUsage
		}
		o.Model = m
	}
	r, err := audit.Run(ctx, fs.Args(), o)
	if err != nil {
		fmt.Fprintln(stderr, "turnpack audit:", err)
		return exitUsage
	}
	write := r.Table
	if *asJSON {
		write = r.JSON
	}
	if err := write(stdout); err != nil {
		fmt.Fprintln(stderr, "turnpack audit:", err)
		return exitUsage
	}
	if r.Worst() >= limit {
		return exitFindings
	}
	return exitClean
}
