// Package cli runs the command line of turnpack, a tree of commands that kong parses.
// Flags may stand before or after file names, help goes to standard output and is no
// error, and all errors of a command line are reported at once.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// Exit codes of every command.
const (
	OK     = 0
	Failed = 1 // the input or the result is bad
	Usage  = 2 // the command line is bad
)

// Program holds the context and the streams of a command.
type Program struct {
	Ctx context.Context
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// JSON prints v, indented.
func (p *Program) JSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// ExitError ends a command with its own exit code. If Err is nil, nothing more is
// printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return fmt.Sprint(e.Err) }

func (e *ExitError) Unwrap() error { return e.Err }

// Mistake returns err as an error of the command line that shows only when the command
// runs.
func Mistake(err error) error { return &ExitError{Usage, err} }

// Main runs the command of tree that args name and returns the exit code. A command is a
// struct with kong tags and a method Run(*Program) error.
func Main(tree any, p *Program, args []string, options ...kong.Option) int {
	exit := -1
	parser := kong.Must(tree, append(options, kong.Name("turnpack"), kong.Writers(p.Out, p.Err),
		kong.Exit(func(code int) { exit = code }), kong.WithHyphenPrefixedParameters(true))...) // -1 and - are values
	if len(args) == 0 {
		args = []string{"--help"}
	}
	l := line{parser: parser}
	l.split(args)
	ctx, err := l.read()
	if exit >= 0 {
		return exit
	}
	if err != nil {
		err = l.allFaults(err)
	} else if c, ok := ctx.Selected().Target.Addr().Interface().(Faulty); ok {
		err = c.Faults()
	}
	if err != nil {
		printErrors(p.Err, err)
		fmt.Fprintf(p.Err, "run 'turnpack %s--help' for what there is\n", l.name())
		return Usage
	}
	if err = ctx.Run(p); err == nil {
		return OK
	}
	printErrors(p.Err, err)
	if e, ok := errors.AsType[*ExitError](err); ok {
		return e.Code
	}
	return Failed
}
