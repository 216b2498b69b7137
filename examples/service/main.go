// Command service is a proxy between agents and an inference engine. It records every
// call, groups the rollouts that end, and gives a trainer one batch per group, exactly
// once.
//
//	service --model DIR --engine http://127.0.0.1:8000 --journal journal --out batches --group 8
//
// README.md describes the requests of agents, harnesses and trainers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
	"github.com/turnpack/turnpack/tokenize"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

// config holds the values of the flags.
type config struct {
	model, engines, kind, listen, admin, recipe string
	drain                                       time.Duration
	maxAge                                      int
	serve.Options
}

func parse(args []string, help io.Writer) (config, error) {
	var c config
	fs := flag.NewFlagSet("service", flag.ContinueOnError)
	fs.SetOutput(help)
	fs.StringVar(&c.model, "model", "", "Hugging Face model `folder`")
	fs.StringVar(&c.engines, "engine", "", "base `URL` of the engine, without /v1; several with commas")
	fs.StringVar(&c.kind, "engine-kind", "vllm", "kind of the engines: vllm, vllm-tokens (with --exact) or sglang")
	fs.StringVar(&c.listen, "listen", "127.0.0.1:8080", "`address` to serve on")
	fs.StringVar(&c.admin, "admin", "", "`address` of pause, metrics, sessions and batches, apart from that of agents; \"\" = that of --listen")
	fs.StringVar(&c.Journal, "journal", "journal", "`folder` of the record")
	fs.StringVar(&c.Out, "out", "batches", "`folder` of the batches")
	fs.StringVar(&c.recipe, "recipe", "", "recipe of rewards, advantages and rows by `name` (turnpack recipe lists them)")
	fs.BoolVar(&c.Exact, "exact", false, "make prompts here, with the ids that were sampled, and read calls from the text")
	keep := fs.String("keep", "spelling", "with --exact, `which` sampled ids stay where the template would write something else: none, spelling or all")
	fs.BoolVar(&c.Prompt.RestoreReasoning, "restore-reasoning", false, "with --exact, replies that an agent sends back without their reasoning get it again")
	fs.DurationVar(&c.drain, "drain", time.Minute, "`time` for open calls to end after SIGTERM")
	fs.BoolVar(&c.Groups.Folder, "folder", false, "the trainer takes batches from the folder without acknowledging them")
	fs.IntVar(&c.Groups.StepGroups, "groups-per-step", 0, "groups of a step, which is a file in steps/ for trainers that read one for each; 0 = the trainer takes batches")
	fs.IntVar(&c.Groups.Size, "group", 8, "rollouts of a group")
	fs.DurationVar(&c.Groups.Deadline, "deadline", 0, "`time` of a group from its first end; 0 = none")
	fs.IntVar(&c.Groups.Least, "least", 1, "rollouts that a group needs at its deadline")
	fs.IntVar(&c.maxAge, "max-age", -1, "most policy `versions` between the oldest token of a rollout and now; -1 = any")
	fs.IntVar(&c.Groups.MaxUndelivered, "max-undelivered", 64, "complete groups waiting for the trainer at which no new session begins")
	fs.IntVar(&c.Record.MaxSessions, "max-sessions", 100_000, "sessions held")
	fs.IntVar(&c.Gate.MaxCalls, "max-calls", 1024, "calls that run at one time, for each engine")
	fs.IntVar(&c.Gate.MaxPerSession, "max-session-calls", 64, "calls of a session that run at one time")
	fs.IntVar(&c.Gate.MaxWaiting, "max-waiting", 4096, "calls that wait")
	fs.IntVar(&c.Gate.Caps.Turns, "max-turns", 0, "turns after which a rollout is truncated; 0 = any")
	fs.IntVar(&c.Gate.Caps.Tokens, "max-tokens", 0, "sampled tokens after which a rollout is truncated; 0 = any")
	fs.DurationVar(&c.Gate.Caps.Time, "max-time", 0, "`time` after which a rollout is truncated; 0 = any")
	fs.BoolVar(&c.Proxy.TokenOnly, "token-only", false, "require the token of a session; its id alone gives no access")
	if err := parseFlags(fs, args); err != nil {
		return c, err
	}
	if c.Prompt.Keep = *keep; *keep == "none" {
		c.Prompt.Keep = ""
	}
	if c.model == "" || c.engines == "" || fs.NArg() > 0 {
		return c, errors.New("--model and --engine are needed, and nothing beside flags")
	}
	if c.maxAge >= 0 {
		age := int32(min(c.maxAge, math.MaxInt32))
		c.Groups.MaxAge = &age
	}
	for _, url := range strings.Split(c.engines, ",") {
		c.Engines = append(c.Engines, engine.Options{URL: url, Kind: c.kind, Key: os.Getenv("ENGINE_API_KEY")})
	}
	return c, nil
}

// open loads the model and assembles the service. Add your own rewards, process rewards
// and estimators here (turnpack.Pipeline, Groups.Score).
func open(c config, log *slog.Logger) (_ *serve.Service, err error) {
	if c.Model, err = tokenize.Load(c.model, tokenize.LoadOptions{}); err != nil {
		return nil, err
	}
	pipeline := turnpack.Pipeline{Model: c.Model, Scale: reward.OutcomePolicy{Outcome: "auto"}}
	if c.recipe != "" {
		r, err := recipe.Named(c.recipe)
		if err == nil {
			pipeline, err = pipeline.With(r)
		}
		if err != nil {
			return nil, err
		}
		c.Export.Metadata = map[string]string{"recipe": c.recipe, "recipe.digest": r.Digest()}
	}
	c.Groups.Rows = func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
		report, err := pipeline.Run(ctx, turnpack.Slice(group), w)
		log.Info("batch", "group", group[0].Group, "rollouts", report.Rollouts, "left_out", report.WithoutRows, "rows", report.Rows, "tokens", report.Tokens, "trained", report.Trained, "dropped_versions", report.DroppedVersions)
		return err
	}
	c.Groups.Refused = func(key stream.Key, err error) {
		log.Error("group", "group", key.Group, "step", key.Step, "error", err)
	}
	return serve.Open(c.Options)
}

// run serves until ctx ends, then waits for open calls and closes.
func run(ctx context.Context, args []string, out, log io.Writer) (err error) {
	c, err := parse(args, log)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	s, err := open(c, logger)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { logger.Info("draining") })
	ready := func(agents net.Addr) {
		fmt.Fprintln(out, "listening on", agents)
		logger.Info("ready", "engine", c.engines, "journal", c.Journal, "out", c.Out, "group", c.Groups.Size)
	}
	return s.Serve(ctx, serve.Listen{Agents: c.listen, Admin: c.admin, Drain: c.drain, Ready: ready, ErrorsAs: &http.Server{ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}})
}
