package main

import (
	"bytes"
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/reward/ssr"
)

const want = `injector group inject/toy%2Fcalculator/c0ffee/removal/1
two files    valid, breaks 2 tests; 2 of 4 solved; injector +0.10
             a failed repair makes a bug of order 2 that breaks 1 tests
harmless     check 5 failed (bug breaks tests): too_few_failing; injector -1.0
no patch     malformed; injector -1.0
same again   valid, but the same change as an earlier bug
too easy     valid, breaks 1 tests; 2 of 2 solved; injector -0.80
`

func TestInMemory(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, play(context.Background(), &out, inMemory))
	require.Equal(t, want, out.String())
}

// TestInProcesses: the process environment judges exactly as the one in memory.
func TestInProcesses(t *testing.T) {
	for _, tool := range []string{"sh", "awk", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install it to run the process environment", tool)
		}
	}
	var out bytes.Buffer
	require.NoError(t, play(context.Background(), &out, inProcesses))
	require.Equal(t, want, out.String())
}

func TestProcessFailures(t *testing.T) {
	a := submissions()[0].artifact
	env := inProcesses(a).(*localEnv)
	env.shell = []string{"no-such-shell"}
	_, err := env.Run(context.Background(), ssr.State{Kind: ssr.Original})
	require.Error(t, err, "a shell that cannot be started is a failure of the environment")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = inProcesses(a).Run(ctx, ssr.State{Kind: ssr.Original})
	require.ErrorIs(t, err, context.Canceled)
}
