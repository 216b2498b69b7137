package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/live"
	"github.com/turnpack/turnpack/rollout/live/gate"
	"github.com/turnpack/turnpack/rollout/proxy"
	"github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/exact"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

// Options configures Open. Engines, Journal, Out and Groups.Rows are required.
type Options struct {
	Engines []engine.Options
	Journal string // folder of the journal
	Out     string // folder of the batches
	// Model makes the prompts if Exact is set, and its vocabulary decides which ids are invalid: calls with
	// such ids are not trained. nil = neither.
	Model  *tokenize.Model
	Exact  bool
	Prompt prompt.Options

	// The options of the parts. Open sets some fields itself (Record.Journal, Gate.Full, and all of Proxy but
	// limits and the keys of clients) and ignores their values here.
	Record live.Options
	Export export.Options
	Gate   gate.Options
	Groups Groups
	Proxy  proxy.Options
}

// Groups configures how groups of rollouts become batches. Rows is required.
type Groups struct {
	// Rows writes the rows of a group. Rollouts that are left out have a Failure. It is called for one group at
	// a time.
	Rows func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error
	// Score returns the process rewards of a rollout that ended, nil = there are none. An error leaves the
	// rollout out, with the reason. Up to eight calls run concurrently.
	Score func(ctx context.Context, r *rollout.Rollout) ([]rollout.StepScore, error)

	Size     int           // rollouts of a group, 0 = 8
	Deadline time.Duration // of a group, from the end of its first rollout; 0 = none
	// Least is the minimum number of rollouts of a group at its deadline, 0 = 1. A group with fewer gives no
	// batch.
	Least int
	// MaxAge leaves out rollouts with tokens of a policy that is more versions old than the current one, or, as
	// after a restart, until the version is told, than the newest of the group; nil = no limit.
	MaxAge *int32
	// Folder: a batch counts as delivered once its file is in the stream's folder, where the trainer reads it;
	// there are no acknowledgements.
	Folder bool
	// StepGroups is the number of groups of a step. Each step is written as one file in place of the files of
	// its batches (stream.Stream.Steps), for trainers that read a file per step; 0 = no step files. It implies
	// Folder, and must not change for a stream.
	StepGroups int
	// MaxUndelivered is the number of complete, unacknowledged groups at which no session may begin; 0 = 64.
	MaxUndelivered int
	// Refused is called for each group of which no batch can be made, and for each failed attempt that will be
	// repeated; may be nil.
	Refused func(key stream.Key, err error)
	Now     func() time.Time // nil = time.Now
}

// Service is a rollout service. Its methods are safe for concurrent use.
type Service struct {
	ctx     context.Context // ends when the service stops
	stop    context.CancelFunc
	journal *live.Journal
	record  *live.Recorder
	gate    *gate.Gate
	batches *stream.Stream
	queue   *queue
	engines engine.Engine
	exact   *exact.Prompts // nil = the engine makes the prompts
	proxy   *proxy.Handler
	watch   sync.WaitGroup
}

// Open makes a service that continues from the contents of its folders.
func Open(o Options) (_ *Service, err error) {
	s := &Service{}
	s.ctx, s.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			if closed := s.Close(s.ctx); !errors.Is(closed, context.Canceled) { // nothing is waited for
				err = errors.Join(err, closed)
			}
		}
	}()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Exact {
		if s.exact, err = exact.New(o.Model, exact.Options{Prompt: o.Prompt}); err != nil {
			return nil, err
		}
	}
	if s.journal, err = live.OpenJournal(o.Journal, live.JournalOptions{}); err != nil {
		return nil, err
	}
	o.Record.Journal = s.journal
	if o.Record.Vocab == 0 && o.Model != nil && o.Model.Tokenizer != nil {
		o.Record.Vocab = o.Model.Tokenizer.Vocab().Size()
	}
	if s.record, err = live.New(o.Record); err != nil {
		return nil, inOptions(err, "", "Record.")
	}
	if s.batches, err = stream.Open(o.Out, o.Export); err != nil {
		return nil, err
	}
	o.Gate.Full = func() string {
		if s.ctx.Err() != nil {
			return "the service ends"
		}
		return s.queue.Full()
	}
	if s.gate, err = gate.New(o.Gate); err != nil {
		return nil, inOptions(err, "", "Gate.")
	}
	if err := s.deliver(o.Groups); err != nil {
		return nil, err
	}
	return s, s.serve(o)
}

// deliver makes the part that trainers use.
func (s *Service) deliver(groups Groups) (err error) {
	if rows := groups.Rows; s.exact != nil {
		groups.Rows = func(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
			err := rows(ctx, group, w)
			for _, r := range group {
				_, ended := s.exact.End(ctx, r)
				err = errors.Join(err, ended)
			}
			return err
		}
	}
	s.queue, err = newQueue(s.record, s.batches, groups, s.gate.Version)
	return err
}

// serve makes the part that agents use.
func (s *Service) serve(o Options) (err error) {
	if s.engines, err = engine.NewPool(o.Engines...); err != nil {
		return inOptions(err, "servers", "Engines")
	}
	p := o.Proxy
	p.Recorder, p.Engine, p.Gate = s.record, s.engines, s.gate
	p.Open = func(ctx context.Context, x live.Start) (*live.Session, error) {
		if x.Parent == "" {
			if err := s.gate.Session(); err != nil {
				return nil, err
			}
		}
		return s.record.Begin(ctx, x)
	}
	if p.Secret == nil {
		if p.Secret, err = secret(filepath.Join(o.Journal, ".secret")); err != nil {
			return err
		}
	}
	if s.exact != nil {
		p.Prompts = s.exact
	}
	if s.proxy, err = proxy.New(p); err != nil {
		return inOptions(err, "", "Proxy.")
	}
	s.watch.Go(func() { engine.Watch(s.ctx, s.engines, 10*time.Second) })
	return nil
}

// secret returns the secret kept beside the record, so that the sessions' tokens outlive the process. Its file is
// hidden, since the folder is a dump to read. An empty file, as left by a kill or a full disk, is replaced: no
// token was made with it.
func secret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(text) == 0 {
		text = []byte(rand.Text())
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "the secret of the sessions' tokens: %w", err)
	}
	if len(text) < 16 {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "the secret of the sessions' tokens has %d bytes, expected 16 or more", len(text)).WithFix("restore it, or remove it: tokens of before hold no longer then")
	}
	return text, nil
}

// Token returns the key with which a client of a session names it, see proxy.Options.TokenOnly.
func (s *Service) Token(session string) string {
	if s.proxy == nil {
		return ""
	}
	return s.proxy.Token(session)
}

// Handler serves agents, harnesses, trainers and operators.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	for at, h := range map[string]http.HandlerFunc{
		"GET /rollouts/{id}": s.rollout, "GET /rollouts/{id}/calls": s.calls, "POST /rollouts/{id}/end": s.queue.serveEnd, "POST /batches/ack": s.queue.serveAck,
		"POST /pause": s.pause, "POST /resume": s.resume, "POST /version": s.version, "GET /healthz": s.health, "GET /metrics": s.metrics, "GET /debug/sessions": s.sessions,
	} {
		mux.HandleFunc(at, h)
	}
	mux.HandleFunc("GET /batches", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context()) // a trainer that waits for a batch does not delay the end
		defer context.AfterFunc(s.ctx, cancel)()
		defer cancel()
		s.queue.serveNext(w, r.WithContext(ctx))
	})
	mux.Handle("/v1/", s.proxy)
	mux.Handle("/rollouts/{id}/", s.proxy) // unknown paths are refused in the dialect's format
	return mux
}

// Stop refuses new sessions, and answers waiting trainers.
func (s *Service) Stop() {
	if s.stop != nil {
		s.stop()
	}
}

// abortTime is how long the calls that Close aborts may take to record their end. With a full disk they end only
// with the journal.
const abortTime = 2 * time.Second

// Close closes the parts, each before those it depends on, and waits for them at most until ctx ends; the calls
// that still run are then aborted.
func (s *Service) Close(ctx context.Context) (err error) {
	s.Stop()
	s.watch.Wait()
	aborted := make(chan struct{})
	if s.proxy == nil {
		close(aborted)
	} else {
		err = s.proxy.Drain(ctx)
		go func() {
			s.proxy.Close()
			close(aborted)
		}()
		select {
		case <-aborted:
		case <-time.After(abortTime):
		}
	}
	if s.engines != nil {
		s.engines.Close()
	}
	if s.queue != nil {
		if late := s.queue.Close(ctx); !errors.Is(err, late) { // the same is said once
			err = errors.Join(err, late)
		}
	}
	if s.batches != nil {
		err = errors.Join(err, s.batches.Close())
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	<-aborted
	return err
}
