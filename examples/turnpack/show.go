package main

import (
	"fmt"
	"io"
	"os"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/show"
	"github.com/turnpack/turnpack/examples/turnpack/internal/tokens"
	"github.com/turnpack/turnpack/internal/faults"
)

type showCmd struct {
	File     string   `arg:"" help:"Parquet file of a batch, the folder it is in, or another file with token ids."`
	Row      int      `arg:"" help:"Row number, from 0." default:"0"`
	Model    string   `help:"Model folder with the tokenizer the batch was made with; the embedded one is recognised."`
	Template string   `help:"With --model and --token: the chat template that the batch was made with, if convert was given one." placeholder:"NAME|FILE"`
	By       string   `help:"Colour tokens by: mask, source, logprob, advantage." enum:"mask,source,logprob,advantage" default:"mask"`
	Token    int      `help:"Print what is known of one token, counted from 0: its bytes, the message, field and bytes it is recorded in, and why it is trained or not." default:"-1"`
	In       []string `help:"With --token: the dumps that the batch was made from, if its record does not name them." sep:"none" type:"path"`
	Color    string   `help:"Colour: auto, always, never." enum:"auto,always,never" default:"auto"`
	Width    int      `help:"Width in columns; 0 = that of the terminal." default:"0"`
}

// Faults reports flags that are out of range or do nothing.
func (c *showCmd) Faults() error {
	var f faults.List
	if c.Token < -1 { // -1, the default, asks for the row
		f.Add("--token", "expected 0 or more, found %d", c.Token)
	}
	if c.Width < 0 {
		f.Add("--width", "expected 0 (that of the terminal) or more, found %d", c.Width)
	}
	if c.Token == -1 && len(c.In) > 0 {
		f.Add("--in", "does nothing without --token")
	}
	return f.Err()
}

// Run prints one row, or one token of it.
func (c *showCmd) Run(p *cli.Program) error {
	var err error
	if c.File, err = cli.One(c.File); err != nil {
		return err
	}
	rows, err := tokens.OpenRows(c.File)
	if err != nil {
		return err
	}
	defer rows.Close()
	row, err := rows.At(c.Row)
	if err != nil {
		return err
	}
	model, err := tokens.ModelOf(c.Model, c.Template, rows.Tokenizer())
	if err != nil {
		return err
	}
	if note := rows.Note(c.Model); note != "" {
		fmt.Fprintln(p.Err, note)
	}
	if c.Token < 0 {
		return show.Printer{By: c.By, Color: c.color(p.Out), Width: c.width(p.Out)}.Row(p.Out, model, &row)
	}
	var src *show.Source
	sources, err := sourcesOf(p.Ctx, model, c.File, c.In, map[string]bool{row.Rollout: true})
	if sources != nil {
		src, err = sources(&row)
	}
	if err != nil {
		return err
	}
	return show.Token(p.Ctx, p.Out, model, &row, c.Token, src)
}

func (c *showCmd) color(w io.Writer) bool {
	switch c.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return cli.Terminal(w) && os.Getenv("NO_COLOR") == ""
}

func (c *showCmd) width(w io.Writer) int {
	if c.Width > 0 {
		return c.Width
	}
	if n := cli.Columns(w); n > 20 {
		return n
	}
	return 100
}
