// Command swerl runs the swe-rl loop: see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/turnpack/turnpack/examples/swerl/data"
	"github.com/turnpack/turnpack/examples/swerl/loop"
)

// commands are the subcommands by name.
var commands = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	"data":       data.Main,
	"eval":       loop.Eval,
	"rollout":    loop.Rollout,
	"serve-exec": serveExec,
	"serve-pool": servePool,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "swerl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && commands[args[0]] != nil {
		return commands[args[0]](ctx, args[1:], out)
	}
	const verbs = "data swe, data pivot, eval, rollout, serve-exec or serve-pool"
	if len(args) > 0 && (args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		_, err := fmt.Fprintf(out, "swerl SUBCOMMAND: %s; swerl SUBCOMMAND --help lists its flags\n", verbs)
		return err
	}
	return errors.New("expected a subcommand: " + verbs)
}
