package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/turnpack/turnpack/rollout/sandbox/swerl"
)

// serve serves until ctx ends, then destroys the remaining sandboxes within drain.
func serve(ctx context.Context, listen string, s swerl.Server, drain time.Duration, out io.Writer) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	// Requests end with the server, so that commands do not outlive it.
	requests, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return requests }}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	running, stop := context.WithCancel(ctx)
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		s.Run(running)
	}()
	fmt.Fprintln(out, "listening on", l.Addr())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	logger.Info("draining")
	stop()
	<-ran
	ending, done := context.WithTimeout(context.Background(), drain)
	defer done()
	cancel()
	return errors.Join(err, server.Shutdown(ending), s.Close(ending), server.Close())
}
