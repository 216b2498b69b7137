package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/internal/kit"
)

const runAs = "TURNPACK_TEST_RUN"

// TestMain runs the command instead of the tests if the environment variable runAs is
// set.
func TestMain(m *testing.M) {
	if args := os.Getenv(runAs); args != "" {
		os.Exit(run(&cli.Program{Ctx: context.Background(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, strings.Split(args, "\n")))
	}
	os.Exit(m.Run())
}

// process returns the command with args as a separate process.
func process(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), runAs+"="+strings.Join(args, "\n"))
	return c
}

// Of two conversions of different dumps to one place, one writes its batch and the other
// ends with an error that says why.
func TestTwoConvertsToOnePlace(t *testing.T) {
	kit.Long(t)
	model := modelDir(t, nil)
	dumps := []string{dump(t, chatLine("first", true)), dump(t, chatLine("second", true))}
	for _, flags := range [][]string{nil, {"--rows-per-shard", "1"}, {"--target", "slime", "--pt"}} {
		for round := range 6 {
			out := filepath.Join(t.TempDir(), "batch")
			runs, said := make([]*exec.Cmd, 2), make([]strings.Builder, 2)
			for i, in := range dumps {
				runs[i] = process(append([]string{"convert", "--model", model, "--in", in, "--out", out, "--quiet"}, flags...)...)
				runs[i].Stderr = &said[i]
				require.NoError(t, runs[i].Start())
			}
			won := -1
			for i := range runs {
				if runs[i].Wait() == nil {
					require.Equal(t, -1, won, "both won, %v round %d", flags, round)
					won = i
				}
			}
			require.NotEqual(t, -1, won, "nobody won: %s %s", said[0].String(), said[1].String())
			require.Regexp(t, "exists|complete|open|another run", said[1-won].String())
			if flags == nil {
				rows, _, err := export.ReadAll(filepath.Join(out, "batch.parquet"))
				require.NoError(t, err)
				require.Contains(t, rows[0].Rollout, []string{"first", "second"}[won])
			}
			code, stdout, stderr := call(t, append([]string{"convert", "--model", model, "--in", dumps[won], "--out", out}, flags...)...)
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, "already complete", fmt.Sprint(flags))
		}
	}
}
