package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
)

// A signal ends a command that watches the context, and abandons one that waits for
// input.
func TestAwait(t *testing.T) {
	for _, c := range []struct {
		reason, said string
		signal       bool
		command      func(ctx context.Context) int
		patience     time.Duration
		want         int
	}{
		{"no signal", "", false, func(context.Context) int { return cli.Usage }, time.Hour, cli.Usage},
		{"it ends itself", "", true, func(ctx context.Context) int { <-ctx.Done(); return cli.Failed }, time.Hour, cli.Interrupted},
		{"it was through", "", true, func(ctx context.Context) int { <-ctx.Done(); return cli.OK }, time.Hour, cli.OK},
		{"it waits for its input", "turnpack: interrupted\n", true, func(context.Context) int { select {} }, time.Millisecond, cli.Interrupted},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if c.signal {
			time.AfterFunc(time.Millisecond, cancel)
		}
		var said bytes.Buffer
		require.Equal(t, c.want, cli.Await(ctx, func() int { return c.command(ctx) }, c.patience, &said), c.reason)
		require.Equal(t, c.said, said.String(), c.reason)
		cancel()
	}
	require.EqualError(t, cli.Reason(fmt.Errorf("read: %w", context.Canceled)), "interrupted")
}
