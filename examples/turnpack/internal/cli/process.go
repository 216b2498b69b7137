package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Interrupted is the exit code of a command that a signal ended.
const Interrupted = 130

// Reason returns why a command ended, in words for its user.
func Reason(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// Await runs a command and returns its exit code, or Interrupted if ctx ended it. It does
// not wait longer than patience for a command that ignores ctx, such as one that waits
// for input.
func Await(ctx context.Context, command func() int, patience time.Duration, errOut io.Writer) int {
	code := make(chan int, 1)
	go func() { code <- command() }()
	select {
	case c := <-code:
		return c
	case <-ctx.Done():
	}
	select {
	case c := <-code:
		if c == OK {
			return OK // the command had already succeeded
		}
	case <-time.After(patience):
		fmt.Fprintln(errOut, "turnpack: interrupted")
	}
	return Interrupted
}

// Terminal reports whether w is a terminal that moves its cursor and shows colours.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Columns returns the width of a terminal, and 0 if w is none or does not tell it.
func Columns(w io.Writer) (n int) {
	if f, ok := w.(*os.File); ok {
		n, _, _ = term.GetSize(int(f.Fd()))
	}
	return n
}
