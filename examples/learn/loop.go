package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	proxyengine "github.com/turnpack/turnpack/rollout/proxy/engine"
	"github.com/turnpack/turnpack/serve"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/prompt"
)

const groupSize = 8 // rollouts per group

// step is a line of the results.
type step struct {
	Arm     string  `json:"arm"`
	Task    string  `json:"task"`
	Fault   fault   `json:"fault,omitempty"`
	Trainer string  `json:"trainer"`
	Seed    int     `json:"seed"`
	Step    int     `json:"step"`
	Reward  float64 `json:"reward"` // mean over the rollouts that did not lose the tool
	Solved  float64 `json:"solved"` // share of them with the full reward
	Lost    int     `json:"lost"`   // rollouts that lost the tool
	// Fidelity is the share of trained tokens that are the engine's own, in the context
	// it saw.
	Fidelity float64 `json:"fidelity"`
	Sampled  int64   `json:"sampled"` // tokens
	Agents   float64 `json:"agents"`  // seconds of agents, service and engine
	Batches  float64 `json:"batches"` // part of Agents: making rows and writing batches
	Training float64 `json:"training"`
	answer
}

// worker makes one run after another and reuses its engines and trainers.
type worker struct {
	config
	served   *engine
	trainers map[string]*trainer // by script
}

func (x *worker) close() {
	if x.served != nil {
		x.served.close()
	}
	for _, t := range x.trainers {
		t.close()
	}
}

func (x *worker) engine() (e *engine, err error) {
	if x.served == nil {
		x.served, err = startEngine(&x.config)
	}
	return x.served, err
}

func (x *worker) trainer(script string) (t *trainer, err error) {
	if t = x.trainers[script]; t == nil {
		if t, err = startTrainer(&x.config, script); err == nil {
			x.trainers[script] = t
		}
	}
	return t, err
}

// loop is one run.
type loop struct {
	arm     arm
	seed    int
	worker  *worker
	model   *tokenize.Model
	service *serve.Service
	url     string
	client  *http.Client
	begin   map[string]any // first message to the trainer

	mu     sync.Mutex
	seq    int           // number of the last batch
	making time.Duration // time to make the batches of the step
	trust  trust         // of the step
}

// loop plays and trains, and calls tell after each step.
func (x *worker) loop(ctx context.Context, a arm, seed int, tell func(step) error) (steps []step, err error) {
	e, err := x.engine()
	if err != nil {
		return nil, err
	}
	l := &loop{arm: a, seed: seed, worker: x, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	defer l.client.CloseIdleConnections()
	dir := filepath.Join(x.out, a.Name, fmt.Sprint("seed-", seed))
	if l.model, err = tokenize.Load(x.config.model(), tokenize.LoadOptions{}); err != nil {
		return nil, err
	}
	if err := sameVocabulary(ctx, e.url, l.model); err != nil {
		return nil, err
	}
	l.service, err = serve.Open(serve.Options{
		Engines: []proxyengine.Options{{URL: e.url}}, Journal: filepath.Join(dir, "journal"), Out: filepath.Join(dir, "batches"), Model: l.model, Exact: !a.Engine, Prompt: prompt.Options{Keep: "spelling"},
		Groups: serve.Groups{Size: groupSize, Rows: l.rows},
	})
	if err != nil {
		return nil, err
	}
	stop, err := l.serve()
	if err != nil {
		return nil, errors.Join(err, l.service.Close(ctx))
	}
	defer func() { err = errors.Join(err, stop()) }()
	l.begin = map[string]any{"model": x.config.model(), "folder": filepath.Join(dir, "trainer"), "engine": e.url, "service": l.url, "seed": seed, "steps": x.steps, "recompute": a.Fault.recomputes()}
	if _, err := l.train(ctx, map[string]any{"run": l.begin}); err != nil {
		return nil, err
	}
	for n := range x.steps {
		s, err := l.step(ctx, n)
		if err == nil {
			err = tell(s)
		}
		if err != nil {
			return steps, fmt.Errorf("step %d: %w", n, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// serve starts to answer agents and the trainer.
func (l *loop) serve() (stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: l.service.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	l.url = "http://" + listener.Addr().String()
	return func() error {
		l.service.Stop()
		return errors.Join(server.Close(), l.service.Close(context.Background()))
	}, nil
}

// train sends a message to the trainer. A trainer that dies is restarted and resumes from
// its checkpoint; three deaths at the same point are an error.
func (l *loop) train(ctx context.Context, what any) (answer, error) {
	for death := 0; ; death++ {
		t, err := l.worker.trainer(l.arm.Trainer)
		var a answer
		if err == nil && death > 0 {
			_, err = t.say(ctx, map[string]any{"run": l.begin})
		}
		if err == nil {
			a, err = t.say(ctx, what)
		}
		if err == nil {
			return a, nil
		}
		if t != nil {
			t.close()
		}
		delete(l.worker.trainers, l.arm.Trainer)
		if !errors.Is(err, errDied) || ctx.Err() != nil || death == 2 {
			return a, err
		}
	}
}

// step plays the groups of a step and trains on them.
func (l *loop) step(ctx context.Context, n int) (step, error) {
	s := step{Arm: l.arm.Name, Task: l.arm.Task, Fault: l.arm.Fault, Trainer: l.arm.Trainer, Seed: l.seed, Step: n}
	began := time.Now()
	l.making, l.trust = 0, trust{}
	if err := l.play(ctx, n, &s); err != nil {
		return s, err
	}
	s.Agents, s.Batches = since(began)-l.making.Seconds(), l.making.Seconds()
	s.Fidelity, s.Sampled = l.trust.share(), l.trust.sampled
	began = time.Now()
	a, err := l.train(ctx, map[string]any{"until": l.seq})
	s.Training, s.answer = since(began), a
	return s, err
}

// play runs the agents of a step concurrently.
func (l *loop) play(ctx context.Context, n int, s *step) error {
	var mu sync.Mutex
	all, ctx := errgroup.WithContext(ctx)
	arrived, counted := 0, 0
	for g := range l.worker.groups {
		r := rand.New(rand.NewPCG(uint64(l.seed), uint64(n)<<32|uint64(g)))
		t := newTask(r)
		for i := range groupSize {
			there := r.Float64() >= l.worker.lost
			all.Go(func() error {
				a := &agent{http: l.client, url: l.url, id: fmt.Sprintf("s%d-g%d-%d", n, g, i), seed: uint64(l.seed)}
				reward, lost, err := playTask[l.arm.Task](a, ctx, t, func() bool { return there })
				if err != nil {
					return err
				}
				group := fmt.Sprintf("s%d-g%02d", n, g)
				mu.Lock()
				if l.arm.Fault == byPosition {
					group = fmt.Sprintf("s%d-p%02d", n, arrived/groupSize)
				}
				arrived++
				if lost {
					s.Lost++
				} else {
					counted++
					s.Reward += reward
					if reward == 1 {
						s.Solved++
					}
				}
				mu.Unlock()
				return l.end(ctx, a, group, reward, lost)
			})
		}
	}
	err := all.Wait()
	s.Reward /= float64(max(1, counted))
	s.Solved /= float64(max(1, counted))
	return err
}

// end reports the end of a rollout to the service. A lost tool is a failure without a
// reward.
func (l *loop) end(ctx context.Context, a *agent, group string, reward float64, lost bool) error {
	ending := map[string]any{"group": group, "reward": reward}
	if lost {
		ending = map[string]any{"group": group, "failure": "the tool was lost"}
		if l.arm.Fault == infraMinusOne {
			ending = map[string]any{"group": group, "reward": -1}
		}
	}
	var answer struct {
		Batch   *struct{ Seq int }
		LeftOut string `json:"left_out"`
	}
	if err := a.post(ctx, "/rollouts/"+a.id+"/end", ending, &answer); err != nil {
		return err
	}
	if answer.LeftOut != "" {
		return fmt.Errorf("group %s: %s", group, answer.LeftOut)
	}
	if answer.Batch != nil {
		l.mu.Lock()
		l.seq = max(l.seq, answer.Batch.Seq)
		l.mu.Unlock()
	}
	return nil
}

// rows makes the rows of a group, with the fault of the arm.
func (l *loop) rows(ctx context.Context, group []*rollout.Rollout, w *export.Writer) error {
	began := time.Now()
	sink := &spoiler{ctx: ctx, fault: l.arm.Fault, model: l.model, rollouts: map[string]*rollout.Rollout{}, w: w}
	for _, r := range group {
		sink.rollouts[r.ID] = r
	}
	_, err := turnpack.Pipeline{Model: l.model, Scale: reward.OutcomePolicy{Outcome: "auto"}}.Run(ctx, turnpack.Slice(group), sink)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trust.add(sink.trust)
	l.making += time.Since(began)
	return err
}

// sameVocabulary returns an error if the engine's vocabulary differs from that of the
// model.
func sameVocabulary(ctx context.Context, url string, m *tokenize.Model) error {
	e, err := proxyengine.New(proxyengine.Options{URL: url})
	if err != nil {
		return err
	}
	var probe string
	for id := range rollout.TokenID(m.Tokenizer.Vocab().Size()) {
		text, err := m.Tokenizer.Decode([]rollout.TokenID{id})
		if err != nil {
			return err
		}
		probe += text + "<|end|>"
	}
	want, err := encode(m, probe)
	if err != nil {
		return err
	}
	got, err := e.Tokenize(ctx, &proxyengine.Request{Text: probe})
	if err != nil {
		return fmt.Errorf("whether the engine has the same vocabulary: %w", err)
	}
	if !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		return fmt.Errorf("the engine has another vocabulary: token %d of a text with each token is %v there and %v here; start it with the same tokenizer.json", at, got[at:min(at+1, len(got))], want[at:min(at+1, len(want))])
	}
	return nil
}
