package prm

import (
	"context"
	"sync"

	"github.com/turnpack/turnpack/internal/zero"
	"github.com/turnpack/turnpack/rollout"
)

// Live scores a rollout while it runs: Submit requests votes on the steps taken so far and returns at
// once, Scores waits for the votes at the end. Seeds, prompts, votes and scores are those of
// [Scorer.Score] on the finished rollout, in whatever order answers arrive. It is safe for concurrent
// use.
type Live struct {
	s      *Scorer
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	id   string
	asks map[int]*ask // by step
	wait sync.WaitGroup
}

// ask is a submitted step.
type ask struct {
	task *task
	out  rollout.StepScore
	done chan struct{}
}

// Live returns a Live for one rollout. Its judge calls share the Scorer's concurrency bound and end
// with ctx or Close.
func (s *Scorer) Live(ctx context.Context) *Live {
	l := &Live{s: s, asks: map[int]*ask{}}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// Submit takes the rollout as it is after the result of its latest step, and requests votes on all
// steps that were not submitted yet. If a step changes afterwards, because it was submitted before its
// result was complete, Scores requests its votes again.
func (l *Live) Submit(r *rollout.Rollout) error {
	_, err := l.submit(r, false)
	return err
}

// Scores waits for the votes on r, the finished rollout, and returns one score per step.
func (l *Live) Scores(r *rollout.Rollout) ([]rollout.StepScore, error) {
	scores, err := l.submit(r, true)
	if err != nil {
		return nil, err
	}
	return l.s.finish(l.ctx, &pending{r: r, scores: scores})
}

// Close cancels the calls in flight and waits until they return. Votes in the journal are kept.
func (l *Live) Close() {
	if l.cancel != nil {
		l.cancel(context.Canceled)
	}
	l.wait.Wait()
}

// submit requests votes on the new steps of r. If r is whole, it also requests votes on changed steps
// again, waits for all votes and returns the scores.
func (l *Live) submit(r *rollout.Rollout, whole bool) ([]rollout.StepScore, error) {
	if l.s == nil || l.s.judge == nil {
		return nil, zero.Value("prm.Live", "Scorer.Live")
	}
	asked := map[*rollout.StepScore]*ask{}
	scores, err := l.s.each(r, func(steps []Step, i int, out *rollout.StepScore) (err error) {
		asked[out], err = l.ask(r, steps, i, whole)
		return err
	})
	if err != nil || !whole {
		return nil, err
	}
	for out, a := range asked {
		<-a.done
		*out = a.out
	}
	return scores, nil
}

// ask returns the ask of step i, and starts it if it is new, or changed in a whole r.
func (l *Live) ask(r *rollout.Rollout, steps []Step, i int, whole bool) (*ask, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == "" {
		l.id = r.ID
	}
	if l.id != r.ID {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Rollout: r.ID}, "submitted where rollout %q was", l.id).WithFix("use a Live for each rollout")
	}
	before := l.asks[steps[i].Index]
	if before != nil && !whole {
		return before, nil
	}
	messages, err := l.s.prompt.Build(r, steps, i)
	if err != nil {
		return nil, err
	}
	a := &ask{done: make(chan struct{})}
	a.out.Step = steps[i].Index
	a.task = l.s.task(r.ID, steps[i].Index, messages, &a.out)
	if before != nil && before.task.digest == a.task.digest {
		return before, nil
	}
	l.asks[steps[i].Index] = a
	l.wait.Go(func() {
		defer close(a.done)
		wave, err := a.task.begin(l.ctx)
		if err == nil && wave != nil {
			err = a.task.run(l.ctx, wave)
		}
		if err != nil {
			l.cancel(err)
		}
	})
	return a, nil
}
