// Package view implements the command that writes a batch as one HTML page: the rows,
// coloured token by token, and distributions over the batch.
//
// The page needs neither network nor server. Its data is in script elements that browsers
// do not run: one JSON object for the batch, one deflated block for the vocabulary in use
// and one for each row, which the page inflates when the row is opened. The same batch
// gives the same bytes.
package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/export/audit"
	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Cmd is the command view.
type Cmd struct {
	Batch    []string `arg:"" optional:"" help:"The batch: a file, or a folder with one; or the folder of a live journal."`
	Model    string   `help:"Model folder with the tokenizer the batch was made with (default: the embedded one)." placeholder:"FOLDER"`
	Template string   `help:"With --model: the chat template that the batch was made with, if convert was given one (name or file)." placeholder:"NAME"`
	Out      string   `help:"File for the page, - for standard output (default: the batch's name with .html)." placeholder:"FILE"`
	Rows     string   `help:"Only these rows, counted from 0, TO not included." placeholder:"FROM:TO"`
	In       []string `help:"Dumps that the batch was made from, if its record does not name them; they show the recorded field of each token." sep:"none" placeholder:"DUMPS"`
	NoAudit  bool     `name:"no-audit" help:"Do not look for findings."`
	Force    bool     `help:"Replace a page that exists."`

	// Tracers returns tracers for the rows; nil for none.
	Tracers Tracers `kong:"-"`

	batch    string // batch file
	journal  string // journal folder that the batch is made from, "" if none
	from, to int    // rows [from, to); to −1: all
}

// Tracers returns a function that gives the tracer of each row of batch whose rollout is
// in rollouts. It reads the dumps in, or those that the batch's record names, and returns
// nil if none are known.
type Tracers func(ctx context.Context, model *tokenize.Model, batch string, in []string, rollouts map[string]bool) (func(*rollout.Sample) *tokens.Tracer, error)

// Help returns the long help text.
func (*Cmd) Help() string {
	return `Writes the batch as one self-contained page: rows with their tokens coloured by mask, log probability, advantage or weight, and the distributions of the batch. What turnpack audit finds is marked in place. docs/view.md describes the page.`
}

// Faults resolves the batch file and the range of rows, and reports errors in them.
func (c *Cmd) Faults() error {
	if len(c.Batch) != 1 {
		return fmt.Errorf("expected one batch file, found %d", len(c.Batch))
	}
	var err error
	if journal(c.Batch[0]) {
		c.journal = filepath.Clean(c.Batch[0])
	} else if c.batch, err = cli.One(c.Batch[0]); err != nil {
		return err
	}
	switch {
	case c.Out != "":
	case c.journal != "":
		c.Out = c.journal + ".html"
	default:
		c.Out = strings.TrimSuffix(c.batch, filepath.Ext(c.batch)) + ".html"
	}
	from, to, ok := strings.Cut(c.Rows, ":")
	var errFrom, errTo error
	if from != "" {
		c.from, errFrom = strconv.Atoi(from)
	}
	if c.to = -1; to != "" {
		c.to, errTo = strconv.Atoi(to)
	}
	if c.Rows != "" && (!ok || errFrom != nil || errTo != nil || c.from < 0 || to != "" && c.to <= c.from) {
		return fmt.Errorf("--rows is %q, expected FROM:TO such as 0:100", c.Rows)
	}
	return nil
}

// Run writes the page.
func (c *Cmd) Run(p *cli.Program) error {
	if c.journal != "" {
		dir, err := os.MkdirTemp("", "turnpack-view-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if c.batch, err = c.writeRecorded(p.Ctx, dir); err != nil {
			return err
		}
		if c.In == nil {
			c.In = []string{c.journal}
		}
	}
	b, err := c.scan(p.Ctx)
	if err != nil {
		return err
	}
	if c.Out == "-" {
		return c.page(p.Ctx, b, p.Out)
	}
	if err := c.file(p.Err, func(w io.Writer) error { return c.page(p.Ctx, b, w) }); err != nil {
		return err
	}
	if b.head.Note != "" {
		fmt.Fprintln(p.Out, b.head.Note)
	}
	fmt.Fprintf(p.Out, "%s: %d rows\n", rollout.Printable(c.Out), len(b.head.Rows))
	return nil
}

// scan reads all rows once and collects what the page shows about the batch.
func (c *Cmd) scan(ctx context.Context) (*builder, error) {
	r, err := tokens.OpenRows(c.batch)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // only read
	model, err := tokens.ModelOf(c.Model, c.Template, r.Tokenizer())
	if err != nil {
		return nil, err
	}
	b := newBuilder(model, filepath.Base(c.batch), c.from)
	rollouts := map[string]bool{}
	b.head.Note, err = c.each(ctx, r, func(s *rollout.Sample, d *audit.Drift) error {
		b.scan(s, d)
		rollouts[s.Rollout] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.head.Report, err = reportOf(c.batch); err != nil {
		return nil, err
	}
	if c.Tracers != nil {
		if b.trace, err = c.Tracers(ctx, model, c.batch, c.In, rollouts); err != nil {
			return nil, err
		}
	}
	if c.NoAudit {
		return b, nil
	}
	facts, err := tokens.Facts(ctx, model)
	if err != nil {
		return nil, err
	}
	report, err := audit.Run(ctx, []string{c.batch}, audit.Options{Model: facts, Examples: maxFindings})
	if err != nil {
		return nil, err
	}
	b.findings(report.Findings)
	return b, nil
}

func (c *Cmd) page(ctx context.Context, b *builder, w io.Writer) error {
	if err := b.begin(w); err != nil {
		return err
	}
	r, err := tokens.OpenRows(c.batch)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read
	if _, err := c.each(ctx, r, func(s *rollout.Sample, _ *audit.Drift) error { return b.write(ctx, s) }); err != nil {
		return err
	}
	return b.end()
}

// each calls f with the requested rows in order, and returns a note on what the file
// lacks.
func (c *Cmd) each(ctx context.Context, r *tokens.Rows, f func(*rollout.Sample, *audit.Drift) error) (note string, err error) {
	for i := 0; c.to < 0 || i < c.to; i++ {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		s, err := r.Read()
		if errors.Is(err, io.EOF) {
			if i <= c.from {
				return "", rollout.Errorf(rollout.KindInput, rollout.Where{File: c.batch}, "no row to show: the file has %d rows, the first asked for is %d", i, c.from).
					WithFix("choose others with --rows FROM:TO")
			}
			return r.Note(c.Model), nil
		}
		if err != nil {
			return "", err
		}
		if i < c.from {
			continue
		}
		if err := f(&s, r.Drift()); err != nil {
			return "", err
		}
	}
	return r.Note(c.Model), nil
}

// file writes the page to a file that appears under its name only when complete.
func (c *Cmd) file(errOut io.Writer, write func(io.Writer) error) error {
	where := rollout.Where{File: c.Out}
	if info, err := os.Lstat(c.Out); err == nil && !info.IsDir() && !c.Force {
		return rollout.Errorf(rollout.KindInput, where, "the page exists").WithFix("choose another --out, or replace it with --force")
	}
	cli.Sweep(errOut, filepath.Dir(c.Out), filepath.Base(c.Out))
	f, err := atomic.Create(c.Out, true)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}
