package cli_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		reason string
		args   []string
		rest   []string
		code   int
		says   string // on standard output or standard error
	}{
		{"flags before files", []string{"--n", "3", "a", "b"}, []string{"a", "b"}, cli.OK, ""},
		{"flags behind files", []string{"a", "--n", "3", "b"}, []string{"a", "b"}, cli.OK, ""},
		{"a file that looks like a flag", []string{"--n=3", "--", "--a", "-b"}, []string{"--a", "-b"}, cli.OK, ""},
		{"help is no mistake", []string{"a", "--help"}, nil, cli.OK, "usage: turnpack look FILE\n\n  --n COUNT"},
		{"an unknown flag", []string{"a", "--m"}, nil, cli.Usage, "turnpack look: flag provided but not defined: -m\nrun 'turnpack look --help'"},
		{"no number", []string{"--n", "x"}, nil, cli.Usage, `invalid value "x"`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			fs := cli.New("look", "look FILE")
			n := fs.Int("n", 3, "`COUNT` of things, which this text describes in so many words that it has to be wrapped somewhere")
			var out, errs strings.Builder
			rest, code, done := cli.Parse(fs, row.args, &out, &errs)
			require.Equal(t, row.code, code)
			require.Equal(t, row.rest, rest)
			require.Equal(t, row.says != "", done)
			require.Contains(t, out.String()+errs.String(), row.says)
			if row.code == cli.OK {
				require.Equal(t, 3, *n)
			}
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 80)
			}
		})
	}
}

func TestMistake(t *testing.T) {
	var errs strings.Builder
	require.Equal(t, cli.Usage, cli.Mistake(cli.New("look", ""), &errs, errors.New("no file")))
	require.Contains(t, errs.String(), "turnpack look: no file")
}
