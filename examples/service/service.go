package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/deliver"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/control"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/tokenize"
)

// service is what the packages are together.
type service struct {
	ctx     context.Context // ends when it stops
	stop    context.CancelFunc
	journal *live.Journal
	record  *live.Recorder
	gate    *gate.Gate
	batches *stream.Stream
	queue   *deliver.Queue
	engines *engine.Pool
	proxy   *proxy.Handler
}

func open(c config, log *slog.Logger) (_ *service, err error) {
	s := &service{}
	s.ctx, s.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(s.ctx))
		}
	}()
	model, err := tokenize.Load(c.model, tokenize.LoadOptions{})
	if err != nil {
		return nil, err
	}
	pipeline, file := turnpack.Pipeline{Model: model}, export.Options{}
	if c.recipe != "" {
		r, err := recipe.Named(c.recipe)
		if err == nil {
			pipeline, err = pipeline.With(r)
		}
		if err != nil {
			return nil, err
		}
		file.Metadata = map[string]string{"recipe": c.recipe}
	}
	if s.journal, err = live.OpenJournal(c.journal, live.JournalOptions{}); err != nil {
		return nil, err
	}
	c.record.Journal = s.journal
	if s.record, err = live.New(c.record); err != nil {
		return nil, err
	}
	if s.batches, err = stream.Open(c.out, file); err != nil {
		return nil, err
	}
	c.gate.Full = func() string {
		if s.ctx.Err() != nil {
			return "the service ends"
		}
		return s.queue.Full()
	}
	if s.gate, err = gate.New(c.gate); err != nil {
		return nil, err
	}
	c.groups.Recorder, c.groups.Stream = s.record, s.batches
	if c.groups.MaxAge != nil {
		c.groups.Version = s.gate.Version
	}
	c.groups.Refused = func(key stream.Key, err error) {
		log.Error("group", "group", key.Group, "step", key.Step, "error", err)
	}
	c.groups.Rows = func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
		report, err := pipeline.Run(ctx, turnpack.Slice(group), w)
		log.Info("batch", "group", group[0].Group, "rollouts", report.Rollouts, "left_out", report.LeftOut, "rows", report.Rows, "tokens", report.Tokens, "trained", report.Trained)
		return err
	}
	if s.queue, err = deliver.New(c.groups); err != nil {
		return nil, err
	}
	return s, s.serve(c, model)
}

// serve makes the part that agents see.
func (s *service) serve(c config, model *tokenize.Model) (err error) {
	var servers []*engine.Server
	for _, url := range strings.Split(c.engines, ",") {
		e, err := engine.New(engine.Options{URL: url, Kind: engine.Kind(c.kind), Key: os.Getenv("ENGINE_API_KEY")})
		if err != nil {
			return err
		}
		servers = append(servers, e)
	}
	if s.engines, err = engine.NewPool(servers...); err != nil {
		return err
	}
	secret, err := os.ReadFile(filepath.Join(c.journal, "secret"))
	if errors.Is(err, os.ErrNotExist) {
		secret = []byte(rand.Text())
		err = os.WriteFile(filepath.Join(c.journal, "secret"), secret, 0o600)
	}
	if err != nil {
		return err
	}
	o := proxy.Options{Recorder: s.record, Engine: s.engines, Secret: secret, Enter: s.gate.Enter, Turn: s.gate.Turn, Answer: gate.Answer, Version: s.gate.Version,
		Open: func(ctx context.Context, x live.Start) (*live.Session, error) {
			if err := s.gate.Session(); err != nil && x.Parent == "" {
				return nil, err
			}
			return s.record.Begin(ctx, x)
		}}
	s.proxy, err = proxy.New(o)
	go s.engines.Watch(s.ctx, 10*time.Second)
	return err
}

func (s *service) handler() http.Handler {
	metrics := func() []control.Metric {
		return append(control.Metrics("turnpack_proxy", "", s.proxy.Stats()), control.Metrics("turnpack_delivery", "reason", s.queue.Stats())...)
	}
	steer := control.New(control.Options{Recorder: s.record, Journal: s.journal, Gate: s.gate, More: metrics})
	batches := s.queue.Handler()
	mux := http.NewServeMux()
	mux.Handle("/", steer)
	mux.Handle("GET /rollouts/{id}", steer)
	mux.Handle("GET /rollouts/{id}/calls", steer)
	mux.Handle("POST /rollouts/{id}/end", batches)
	mux.Handle("POST /batches/ack", batches)
	mux.HandleFunc("GET /batches", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context()) // who waits for a batch does not hold up the end
		defer context.AfterFunc(s.ctx, cancel)()
		defer cancel()
		batches.ServeHTTP(w, r.WithContext(ctx))
	})
	mux.Handle("/v1/", s.proxy)
	mux.Handle("/rollouts/{id}/v1/", s.proxy)
	return mux
}

// close ends what runs, in the order in which each needs the next, at most until ctx ends.
func (s *service) close(ctx context.Context) (err error) {
	s.stop()
	if s.proxy != nil {
		err = s.proxy.Drain(ctx)
		s.proxy.Close()
	}
	if s.engines != nil {
		s.engines.Close()
	}
	if s.queue != nil {
		err = errors.Join(err, s.queue.Close(ctx))
	}
	if s.batches != nil {
		err = errors.Join(err, s.batches.Close())
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	return err
}
