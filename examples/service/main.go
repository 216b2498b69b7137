// Command service stands between running agents and an inference engine. Agents
// use it as their OpenAI base URL; it records the tokens of every call, and each
// group of rollouts that is complete becomes a training batch.
//
//	service -model DIR -engine http://127.0.0.1:8000 -out batches -group 8
//
// README.md shows the two requests that an agent's harness makes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/turnpack/turnpack/tokenize"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("service", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:8080", "`address` to serve on")
	engine := fs.String("engine", "", "base `URL` of the engine, without /v1")
	modelDir := fs.String("model", "", "Hugging Face model `folder`")
	out := fs.String("out", "batches", "`folder` for the batches")
	group := fs.Int("group", 8, "rollouts of a group")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *engine == "" || *modelDir == "" || *group < 1 {
		return errors.New("-engine and -model are needed, and -group is 1 or more")
	}
	model, err := tokenize.Load(*modelDir, tokenize.LoadOptions{})
	if err != nil {
		return err
	}
	batches, err := newBatches(model, *out)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *listen, Handler: newService(*engine, *group, batches).handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	fmt.Printf("agents use http://%s/rollouts/ID/v1 as their base URL\n", *listen)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Calls that are under way may end: a sampled reply is not lost.
	closing, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return server.Shutdown(closing)
}
