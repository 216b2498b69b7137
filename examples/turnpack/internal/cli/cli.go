// Package cli reads the command lines of the subcommands that keep flags of
// their own: flags stand before or after file names, help goes to standard
// output and is no failure, and a mistake says where the flags are listed.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Exit codes of every command.
const (
	OK     = 0
	Failed = 1 // the input or the result is bad
	Usage  = 2 // the command line is bad
)

// New returns the flags of the subcommand name. about follows "usage: turnpack"
// in its help.
func New(name, about string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() { fmt.Fprintf(fs.Output(), "usage: turnpack %s\n\n%s", about, flags(fs)) }
	return fs
}

// Parse sets the flags and returns the other arguments. done says that the
// command ends here with code, after help or a mistake.
func Parse(fs *flag.FlagSet, args []string, stdout, stderr io.Writer) (rest []string, code int, done bool) {
	rest, err := Interleaved(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return nil, OK, true
	}
	if err != nil {
		return nil, Mistake(fs, stderr, err), true
	}
	return rest, OK, false
}

// Mistake says what is wrong with a command line and returns the exit code.
func Mistake(fs *flag.FlagSet, stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "turnpack %s: %v\nrun 'turnpack %s --help' for the flags\n", fs.Name(), err, fs.Name())
	return Usage
}

// Interleaved lets flags follow file names; after "--" nothing is a flag.
func Interleaved(fs *flag.FlagSet, args []string) ([]string, error) {
	var files []string
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		left := fs.Args()
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			return append(files, left...), nil
		}
		if len(left) == 0 {
			return files, nil
		}
		files, args = append(files, left[0]), left[1:]
	}
}

// flags lists the flags with what they do, wrapped for 80 columns.
func flags(fs *flag.FlagSet) string {
	const column, width = 26, 80
	var b strings.Builder
	fs.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		head := "  --" + f.Name
		if value != "" {
			head += " " + value
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && !strings.Contains(text, "(default") {
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		at := len(head)
		b.WriteString(head)
		if at >= column-1 {
			at = width
		}
		for word := range strings.FieldsSeq(text) {
			switch {
			case at < column:
				b.WriteString(strings.Repeat(" ", column-at))
				at = column
			case at+1+len(word) > width:
				b.WriteString("\n" + strings.Repeat(" ", column))
				at = column
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += len(word)
		}
		b.WriteByte('\n')
	})
	return b.String()
}
