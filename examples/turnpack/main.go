// Command turnpack turns trajectory dumps into training batches.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/turnpack/turnpack/examples/turnpack/audit"
	"github.com/turnpack/turnpack/examples/turnpack/grade"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/heap"
	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/examples/turnpack/pivot"
	"github.com/turnpack/turnpack/examples/turnpack/score"
	"github.com/turnpack/turnpack/examples/turnpack/view"
	"github.com/turnpack/turnpack/internal/plumb/verbs"
)

// exitLeftOut is the exit code if the batch is written, but records were left out and listed
// (convert --on-error report).
const exitLeftOut = 3

// commandLine is the command tree that kong parses.
type commandLine struct {
	Convert convertCmd `cmd:"" help:"Turn a folder of dumps into trainer-ready Parquet."`
	Certify certifyCmd `cmd:"" help:"Say what a model's chat template does to rollouts, with a witness each."`
	Show    showCmd    `cmd:"" help:"Print one row of a batch, coloured by its loss mask."`
	View    view.Cmd   `cmd:"" help:"Write a batch as one page for the browser."`
	Audit   audit.Cmd  `cmd:"" help:"Say what would crash a trainer or train wrongly, in any batch."`
	Diff    audit.Diff `cmd:"" help:"Compare two batches row by row."`
	Grade   grade.Cmd  `cmd:"" help:"Grade SWE-bench test logs: verdicts and the report of a run."`
	Pivot   pivot.Cmd  `cmd:"" help:"Score single steps by the recorded step (pivot score)."`
	Score   score.Cmd  `cmd:"" help:"Score every step of every rollout with an LLM judge."`
	Recipe  recipeCmd  `cmd:"" help:"List the recipes of systems, or print one with its sources."`
	Demo    demoCmd    `cmd:"" help:"Run the main job on the built-in tokenizer and sample dump."`

	Licences licencesCmd `cmd:"" help:"Print the licences of what this program is made of."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal kills the process
	heap.Bound()
	p := &cli.Program{Ctx: ctx, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(cli.Await(ctx, func() int { return run(p, os.Args[1:]) }, 3*time.Second, os.Stderr))
}

func run(p *cli.Program, args []string) int {
	if len(args) > 0 && args[0] == "plumb" { // for scripts where bin/plumb is not built
		return verbs.Main(p.Ctx, args[1:], p.In, p.Out, p.Err)
	}
	return cli.Main(&commandLine{View: view.Cmd{Tracers: tracersOf}}, p, args,
		kong.Description("Turns multi-turn agent rollouts into training batches."), kong.Resolvers(kong.ResolverFunc(shape.Defaults)))
}
