package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
)

// look is a command for the tests.
type look struct {
	Files []string `arg:"" optional:"" name:"files"`
	N     int      `default:"3" placeholder:"COUNT" help:"Number of things, which this text describes in so many words that it has to be wrapped somewhere."`
	ran   bool
}

func (*look) Help() string { return "It reads them." }

func (l *look) Faults() error {
	if len(l.Files) == 5 {
		return errors.New("no file")
	}
	return nil
}

func (l *look) Run(*cli.Program) error {
	l.ran = true
	return nil
}

func TestCommandLine(t *testing.T) {
	for _, row := range []struct {
		reason string
		args   []string
		n      int
		rest   []string
		code   int
		says   string // on standard output or standard error
	}{
		{"flags before files", []string{"--n", "3", "a", "b"}, 3, []string{"a", "b"}, cli.OK, ""},
		{"flags after files", []string{"a", "--n", "3", "b"}, 3, []string{"a", "b"}, cli.OK, ""},
		{"flags between files", []string{"a", "--n=4", "b", "-"}, 4, []string{"a", "b", "-"}, cli.OK, ""},
		{"a flag without its value", []string{"a", "--n"}, 0, nil, cli.Usage, "--n"},
		{"a file that looks like a flag", []string{"--n=3", "--", "--a", "-b"}, 3, []string{"--a", "-b"}, cli.OK, ""},
		{"values with a dash", []string{"--n", "-1", "-"}, -1, []string{"-"}, cli.OK, ""},
		{"help is no mistake", []string{"a", "--help"}, 0, nil, cli.OK, "Usage: turnpack look [<files> ...] [flags]\n\nLooks at files."},
		{"short help", []string{"-h"}, 0, nil, cli.OK, "--n=COUNT"},
		{"an unknown flag", []string{"a", "--m"}, 0, nil, cli.Usage, "turnpack: unknown flag --m"},
		{"where help is", []string{"a", "--m"}, 0, nil, cli.Usage, "run 'turnpack look --help'"},
		{"no number", []string{"--n", "x"}, 0, nil, cli.Usage, `"x"`},
		{"an empty value", []string{"--n", "", "a", "--m"}, 0, nil, cli.Usage, "--n: is empty, expected a value (leave the flag out"},
		{"two values", []string{"--n", "1", "a", "--n=2"}, 0, nil, cli.Usage, `--n: is given as "1" and as "2", expected one value`},
		{"one value twice", []string{"--n", "4", "a", "--n=4"}, 4, []string{"a"}, cli.OK, ""},
		{"an empty file name", []string{"a", ""}, 0, nil, cli.Usage, "name of a file is empty"},
		{"faults of several", []string{"a", "b", "c", "--n=4", "d", "e"}, 0, nil, cli.Usage, "turnpack: no file\nrun 'turnpack look --help'"},
		{"all flags at once", []string{"--n", "x", "a", "--m"}, 0, nil, cli.Usage, "but got \"x\"\nturnpack: unknown flag --m"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var tree struct {
				Look look `cmd:"" help:"Looks at files."`
			}
			var out, errs strings.Builder
			code := cli.Main(&tree, &cli.Program{Ctx: t.Context(), Out: &out, Err: &errs}, append([]string{"look"}, row.args...))
			require.Equal(t, row.code, code)
			require.Equal(t, row.says == "", tree.Look.ran)
			require.Contains(t, out.String()+errs.String(), row.says)
			if tree.Look.ran {
				require.Equal(t, row.rest, tree.Look.Files)
				require.Equal(t, row.n, tree.Look.N)
			}
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 80)
			}
		})
	}
}

// A folder's name is not read as a pattern.
func TestBatchesOfOddFolders(t *testing.T) {
	for _, name := range []string{"a[1", "a*", "a[b-c]"} {
		dir := filepath.Join(t.TempDir(), name)
		want := filepath.Join(dir, "data", "x.parquet")
		require.NoError(t, os.MkdirAll(filepath.Dir(want), 0o755))
		require.NoError(t, os.WriteFile(want, nil, 0o600))
		got, err := cli.Batches([]string{dir})
		require.NoError(t, err)
		require.Equal(t, []string{want}, got)
	}
}
