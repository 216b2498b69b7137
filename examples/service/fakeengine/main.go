// Command fakeengine serves an inference engine without a model, with the API of vLLM.
//
//	fakeengine -listen 127.0.0.1:8000 -model DIR -script replies.jsonl
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/turnpack/turnpack/internal/fakeengine"
	"github.com/turnpack/turnpack/tokenize"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeengine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o fakeengine.Options
	fs := flag.NewFlagSet("fakeengine", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:8000", "`address` to serve on")
	model := fs.String("model", "", "Hugging Face model `folder` for tokens and template; without one a token is a byte")
	script := fs.String("script", "", "`file` of replies, a JSON object a line: text, or content, reasoning, tool_calls")
	fs.StringVar(&o.Name, "name", "fake", "`name` of the model")
	fs.Uint64Var(&o.Seed, "seed", 1, "of replies without a script")
	fs.IntVar(&o.Event, "event", 1, "`tokens` of an event of a stream")
	fs.StringVar(&o.Weight, "weight-version", "", "`version` of the weights that replies tell")
	f := &o.Faults
	fs.IntVar(&f.Count, "fault-count", 0, "`number` added to the completion tokens of usage")
	fs.IntVar(&f.Fail, "fault-fail", 0, "the first `number` of requests are refused")
	fs.IntVar(&f.Status, "fault-status", 500, "`status` of refused requests")
	fs.IntVar(&f.Cut, "fault-cut", 0, "replies end after `bytes`")
	fs.DurationVar(&f.Delay, "fault-delay", 0, "`time` before each event")
	fs.BoolVar(&f.Duplicate, "fault-duplicate", false, "the ids of one event come twice")
	fs.BoolVar(&f.Drop, "fault-drop", false, "streams with tools leave out events without text")
	fs.BoolVar(&f.NaN, "fault-nan", false, "a log probability is NaN")
	fs.BoolVar(&f.Beyond, "fault-beyond", false, "an id is none of the vocabulary")
	fs.BoolVar(&f.Garble, "fault-garble", false, "an event is no JSON")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *model != "" {
		m, err := tokenize.Load(*model, tokenize.LoadOptions{})
		if err != nil {
			return err
		}
		o.Model = m
	}
	if *script != "" {
		file, err := os.Open(*script)
		if err != nil {
			return err
		}
		o.Script, err = fakeengine.Script(file)
		file.Close()
		if err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: fakeengine.New(o), ReadHeaderTimeout: 10 * time.Second}
	fmt.Println("listening on", l.Addr())
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	case <-ctx.Done():
		return server.Close()
	}
}
