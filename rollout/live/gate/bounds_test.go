package gate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Of a wait whose context ends while calls run, only the pause remains.
func TestEndedPausesAreForgotten(t *testing.T) {
	var g Gate
	leave, err := g.Enter(t.Context(), "engine", "session")
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		require.ErrorIs(t, g.Pause(ended, "finish"), context.Canceled)
	}
	require.Empty(t, g.idle)
	idle := make(chan error, 1)
	go func() { idle <- g.Pause(t.Context(), "finish") }()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		g.lock()
		waits = len(g.idle)
		g.mu.Unlock()
	}
	require.ErrorIs(t, g.Pause(ended, "finish"), context.Canceled)
	leave()
	require.NoError(t, <-idle)
	require.Empty(t, g.idle)
}
