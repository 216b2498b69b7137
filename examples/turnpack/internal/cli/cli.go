// Package cli reads the command lines of the subcommands that packages of their own
// hold: flags stand before or after file names, help goes to standard output and is no
// failure, and a mistake says where the flags are listed.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/turnpack/turnpack/rollout"
)

// Exit codes of every command.
const (
	OK     = 0
	Failed = 1 // the input or the result is bad
	Usage  = 2 // the command line is bad
)

// Parse sets flags, a pointer to a struct with the tags of kong, of the subcommand name.
// about is the text of its help. done says that the command ends here with code, after
// help or a mistake.
func Parse(name, about string, flags any, args []string, stdout, stderr io.Writer) (code int, done bool) {
	exit := -1
	parser, err := kong.New(flags, kong.Name("turnpack "+name), kong.Description(about), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }), kong.WithHyphenPrefixedParameters(true)) // -1 and - are values
	if err != nil {
		return Mistake(name, stderr, err), true
	}
	args = filesLast(parser, args)
	_, err = Read(parser, args)
	if exit >= 0 {
		return exit, true
	}
	if err != nil {
		if single, _ := singly(parser, args); len(single) > 0 {
			err = errors.Join(single...)
		}
		return Mistake(name, stderr, err), true
	}
	return OK, false
}

// filesLast moves what is no flag to the end, since kong takes a list of files in one
// piece only.
func filesLast(parser *kong.Kong, args []string) []string {
	flags, files := split(parser, args)
	if at := slices.Index(files, "--"); at >= 0 {
		files = slices.Delete(files, at, at+1)
	}
	if len(files) > 0 {
		files = append([]string{"--"}, files...)
	}
	return append(slices.Concat(flags...), files...)
}

// Mistake says what is wrong with the command line of the subcommand name and returns
// the exit code.
func Mistake(name string, stderr io.Writer, err error) int {
	lines := strings.Split(err.Error(), "\n") // one for each fault
	for i := range lines {
		lines[i] = rollout.Printable(lines[i])
	}
	fmt.Fprintf(stderr, "turnpack %s: %s\nrun 'turnpack %s --help' for the flags\n", name, strings.Join(lines, "\n"), name)
	return Usage
}
