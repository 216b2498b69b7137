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

// watch is the client's hook. A request that fails is tried again for minutes, in
// which a wrong address looks like a slow judge: so the first failure is told at
// once, unless the judge has answered before, and progress lines name the last.
type watch struct {
	w        io.Writer
	patience time.Duration

	mu       sync.Mutex
	answered bool
	told     bool
	last     error // since it was taken
}

// Start watches one request.
func (w *watch) Start(ctx context.Context, a openai.Attempt) (context.Context, func(openai.Outcome)) {
	return ctx, func(o openai.Outcome) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case o.Err == nil:
			w.answered = true
		case !errors.Is(ctx.Err(), context.Canceled): // a run that ends breaks requests off
			w.last = o.Err
			if !w.answered && !w.told {
				w.told = true
				fmt.Fprintf(w.w, "no answer of %s yet: %v; each vote is tried for up to %s (--patience, --retries)\n", a.Endpoint, rollout.Printable(o.Err.Error()), w.patience)
			}
		}
	}
}

// take returns the last failure that was not taken before.
func (w *watch) take() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.last
	w.last = nil
	return err
}

// lines lets several goroutines write whole lines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
