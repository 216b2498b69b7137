package score

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/turnpack/turnpack/prm/openai"
	"github.com/turnpack/turnpack/rollout"
)

// watch is the client's hook. Since a failed request is retried for minutes, a wrong
// address looks like a slow judge. So watch prints the first failure at once, unless the
// judge has already answered, and progress lines show the last one.
type watch struct {
	w        io.Writer
	patience time.Duration

	mu       sync.Mutex
	answered bool
	warned   bool
	last     error // last failure since take
}

// Start observes one request.
func (w *watch) Start(ctx context.Context, a openai.Attempt) (context.Context, func(openai.Outcome)) {
	return ctx, func(o openai.Outcome) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case o.Err == nil:
			w.answered = true
		case !errors.Is(ctx.Err(), context.Canceled): // a cancelled run aborts its requests
			w.last = o.Err
			if !w.answered && !w.warned {
				w.warned = true
				fmt.Fprintf(w.w, "no answer of %s yet: %v; each vote is tried for up to %s (--patience, --retries)\n", a.Endpoint, rollout.Printable(o.Err.Error()), w.patience)
			}
		}
	}
}

// take returns the last failure and clears it.
func (w *watch) take() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.last
	w.last = nil
	return err
}

// lines is a writer for whole lines that several goroutines may use.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
