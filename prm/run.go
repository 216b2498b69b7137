package prm

import (
	"context"
	"iter"

	"github.com/turnpack/turnpack/rollout"
)

// ScoreAll scores a stream of rollouts with one bound on judge calls in flight and passes each rollout
// with its scores to emit, in input order. Votes start in order too: rollout by rollout, step by step,
// all votes of a step together, so that a judge's prefix cache sees each prompt once.
//
// At most Options.Concurrency rollouts wait for the oldest unfinished one. With a journal, a rollout
// is emitted only after its votes are on stable storage. An error from the stream or from emit ends
// the run; earlier rollouts have been emitted. ScoreAll waits for the stream to yield: a stream that
// can block forever must end with ctx.
func (s *Scorer) ScoreAll(ctx context.Context, rollouts iter.Seq2[*rollout.Rollout, error], emit func(*rollout.Rollout, []rollout.StepScore) error) error {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *pending, min(s.o.Concurrency, 1<<16)) // bounded, since a channel's buffer is allocated up front
	var readErr error
	go func() {
		defer close(queue)
		for r, err := range rollouts {
			if err != nil {
				readErr = err
				return
			}
			p := s.start(ctx, cancel, r)
			// A cancelled run still queues the rollouts it started, so that nothing is left running
			// when ScoreAll returns.
			queue <- p
			if ctx.Err() != nil {
				return
			}
		}
	}()
	var failed error
	for p := range queue {
		scores, err := s.finish(ctx, p)
		if failed != nil {
			continue
		}
		if err == nil {
			err = emit(p.r, scores)
		}
		if err != nil {
			failed = err
			cancel(err)
		}
	}
	if failed == nil {
		failed = readErr
	}
	if failed == nil && outer.Err() != nil {
		return rollout.Errorf(rollout.KindJudge, rollout.Where{}, "scoring stopped: %w", context.Cause(outer))
	}
	return failed
}
