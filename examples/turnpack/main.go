// Command turnpack turns trajectory dumps into training batches.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/turnpack/turnpack/examples/turnpack/plumb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == "plumb" {
		return plumb.Main(ctx, args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	fmt.Fprintln(os.Stderr, "usage: turnpack plumb NAME")
	return 2
}
