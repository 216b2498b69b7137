package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/turnpack/turnpack/rollout"
)

// Faulty is a command that checks its flags together.
type Faulty interface{ Faults() error }

// line is a command line split into its parts.
type line struct {
	parser  *kong.Kong
	command []string   // the name of the command, or empty
	flags   [][]string // each with its value
	files   []string   // arguments that are not flags
}

// split splits args into the parts of l.
func (l *line) split(args []string) {
	takesValue := map[string]bool{}
	for _, n := range l.parser.Model.Children {
		if len(args) > 0 && n.Name == args[0] {
			l.command, args = args[:1], args[1:]
			for _, f := range n.Flags {
				takesValue["--"+f.Name] = !f.IsBool()
			}
			break
		}
	}
	for len(args) > 0 {
		n := 1
		switch arg := args[0]; {
		case arg == "--":
			l.files = append(l.files, args[1:]...)
			return
		case !strings.HasPrefix(arg, "-") || arg == "-":
			l.files = append(l.files, arg)
		default:
			if takesValue[arg] {
				n = min(2, len(args))
			}
			l.flags = append(l.flags, args[:n])
		}
		args = args[n:]
	}
}

// name returns the command's name followed by a space, or "" if there is none.
func (l *line) name() string { return strings.Join(append(l.command, ""), " ") }

// parse parses the line with the given flags only. Files come last because kong accepts a
// list of arguments only in one piece.
func (l *line) parse(flags [][]string) (*kong.Context, error) {
	args := slices.Concat(l.command, slices.Concat(flags...))
	if len(l.command) > 0 {
		args = append(args, "--")
	}
	return l.parser.Parse(append(args, l.files...))
}

// read parses the line. It refuses flags with an empty value, as an unset shell variable
// gives: it would count as not given, or as the current folder. It also refuses two
// different values for a flag that takes one, of which kong would use the last.
func (l *line) read() (*kong.Context, error) {
	ctx, err := l.parse(l.flags)
	if err != nil {
		return ctx, err
	}
	first := map[string]string{}
	for _, flag := range l.flags {
		name, value, given := valueOf(flag)
		before, again := first[name]
		single := slices.ContainsFunc(ctx.Flags(), func(f *kong.Flag) bool { return "--"+f.Name == name && !f.IsCumulative() })
		if first[name] = value; given && single && again && before != value {
			err = errors.Join(err, rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, "is given as %q and as %q, expected one value", before, value))
		}
		err = errors.Join(err, empty(flag))
	}
	if slices.Contains(l.files, "") {
		err = errors.Join(err, rollout.Errorf(rollout.KindInput, rollout.Where{}, "the name of a file is empty").WithFix("leave it out"))
	}
	return ctx, err
}

// valueOf splits a flag into name and value. given is false if it has no value.
func valueOf(flag []string) (name, value string, given bool) {
	name, value, given = strings.Cut(flag[0], "=")
	if len(flag) == 2 {
		value, given = flag[1], true
	}
	return name, value, given
}

func empty(flag []string) error {
	name, value, given := valueOf(flag)
	if !given || value != "" {
		return nil
	}
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, "is empty, expected a value").WithFix("leave the flag out for its default")
}

// allFaults returns all errors of a line that was refused with err. Since a parser stops
// at the first error, each flag is parsed alone, and the valid ones are then checked
// together.
func (l *line) allFaults(err error) error {
	// Parsed alone, a flag lacks the required ones, which is not its error.
	lacks := func(err error) bool { return strings.HasPrefix(err.Error(), "missing flags:") }
	if _, err := l.parse(nil); err != nil && !lacks(err) {
		return printable(err) // the error is not in the flags
	}
	var good [][]string
	var faults []error
	for _, flag := range l.flags {
		_, err := l.parse([][]string{flag})
		if err != nil && lacks(err) {
			err = nil
		}
		if err = errors.Join(printable(err), empty(flag)); err != nil {
			faults = append(faults, err)
		} else {
			good = append(good, flag)
		}
	}
	if len(faults) == 0 {
		return printable(err)
	}
	ctx, err := l.parse(good)
	if err != nil {
		faults = append(faults, printable(err))
	} else if c, ok := ctx.Selected().Target.Addr().Interface().(Faulty); ok {
		faults = append(faults, c.Faults())
	}
	return errors.Join(faults...)
}

// printable returns the errors joined in err with control characters made visible; they
// quote the line.
func printable(err error) error {
	all := flatten(err)
	for i, e := range all {
		all[i] = errors.New(rollout.Printable(e.Error()))
	}
	return errors.Join(all...)
}
