//go:build linux

package serve_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
)

// The end of a service whose disk is full, with a call that runs, does not wait for room on the disk.
func TestCloseWithAFullDisk(t *testing.T) {
	came := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			close(came)
			<-r.Context().Done()
		}
	}))
	defer upstream.Close()
	s, err := serve.Open(serve.Options{Engines: []engine.Options{{URL: upstream.URL}}, Journal: t.TempDir(), Out: t.TempDir(),
		Groups: serve.Groups{Size: 1, Rows: func(context.Context, []*rollout.Rollout, *export.Writer) error { return nil }}})
	require.NoError(t, err)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/rollouts/a/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)))
	}()
	<-came
	time.Sleep(50 * time.Millisecond) // the call's record is durable

	// No file of this process may grow: writes fail as on a full disk.
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 16, Max: before.Max}))
	unlimited := func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
	defer unlimited()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		ended <- s.Close(ctx)
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, live.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case <-time.After(20 * time.Second):
		t.Error("Close waits for room on the disk")
		unlimited()
		<-ended
	}
	<-answered
}
