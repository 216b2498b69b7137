// Package audit implements the commands audit and diff.
package audit

import (
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/rollout"
)

// Cmd is the command audit.
type Cmd struct {
	Files    []string `arg:"" name:"batch" help:"Batch files, or folders of them."`
	Model    string   `help:"Model folder; needed for the rules that use a tokenizer." placeholder:"FOLDER"`
	Template string   `help:"With --model: chat template of the folder by its name, or a file in its place." placeholder:"NAME"`
	JSON     bool     `name:"json" help:"Write the report as JSON."`
	Examples int      `help:"Places shown per rule." default:"3" placeholder:"N"`
	FailOn   string   `name:"fail-on" help:"Severity that makes the exit status 1: error, warn or info." enum:"error,warn,info" default:"error" placeholder:"SEVERITY"`
}

// Help returns the long help text.
func (*Cmd) Help() string {
	return `Reads training batches by anyone (Parquet and Arrow of this module, slime .pt, prime-rl .bin, SkyRL- and verl-style Parquet, Parquet and JSON Lines with ids and a mask) and says what would crash a trainer or train wrongly. Exit status 1 means findings of the --fail-on severity or worse, 2 that the audit could not be made.`
}

// Faults reports flags that are out of range.
func (c *Cmd) Faults() error {
	if c.Examples < 1 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--examples"}, "expected 1 or more, found %d", c.Examples)
	}
	return nil
}

// Run audits the files and prints the report.
func (c *Cmd) Run(p *cli.Program) error {
	r, err := c.report(p)
	if err != nil {
		return cli.Mistake(err)
	}
	if c.JSON {
		err = r.JSON(p.Out)
	} else {
		err = r.Table(p.Out)
	}
	if err != nil {
		return cli.Mistake(err)
	}
	if r.Worst() >= map[string]audit.Severity{"info": audit.Info, "warn": audit.Warn, "error": audit.Error}[c.FailOn] {
		return &cli.ExitError{Code: cli.Failed}
	}
	return nil
}

func (c *Cmd) report(p *cli.Program) (*audit.Report, error) {
	o := audit.Options{Examples: c.Examples}
	if c.Model != "" || c.Template != "" {
		model, err := tokens.ModelOf(c.Model, c.Template, "")
		if err != nil {
			return nil, err
		}
		if o.Model, err = tokens.Facts(p.Ctx, model); err != nil {
			return nil, err
		}
	}
	files, err := cli.Batches(c.Files)
	if err != nil {
		return nil, err
	}
	return audit.Run(p.Ctx, files, o)
}
