// Package ahead begins to read an input before it is asked for, while the model loads.
package ahead

import (
	"context"
	"iter"
	"os"
	"sync/atomic"

	"github.com/turnpack/turnpack/internal/kept"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
)

// Source is a traj.Source of which the first reading has begun.
type Source struct {
	*traj.Source
	begun atomic.Pointer[reading] // nil = none, or taken
}

// reading is one that another goroutine begins: it goes on until somebody asks for what was
// read, who then goes on himself, or until that is as much as a pipeline holds.
type reading struct {
	next  func() (*rollout.Rollout, error, bool)
	stop  func()
	asked chan struct{}
	held  []record      // to be read once idle is closed
	idle  chan struct{} // nobody reads any more
}

type record struct {
	rollout *rollout.Rollout
	err     error
}

// New is traj.NewSource for a batch in the folder out, which begins to read, after a call of
// first, unless files are there: an earlier run may have left what spares this one most of the
// reading.
func New(ctx context.Context, paths []string, opt traj.Options, out string, first func()) (*Source, error) {
	return begin(ctx, paths, opt, out, first, kept.Limit)
}

// begin is New that reads about so many bytes of rollouts before they are asked for.
func begin(ctx context.Context, paths []string, opt traj.Options, out string, first func(), most int64) (*Source, error) {
	src, err := traj.NewSource(paths, opt)
	if err != nil {
		return nil, err
	}
	s := &Source{Source: src}
	if files, _ := os.ReadDir(out); len(files) > 0 {
		return s, nil
	}
	r := &reading{asked: make(chan struct{}), idle: make(chan struct{})}
	r.next, r.stop = iter.Pull2(src.Rollouts(ctx))
	s.begun.Store(r)
	go func() {
		defer close(r.idle)
		first()
		r.begin(most)
	}()
	return s, nil
}

func (r *reading) begin(most int64) {
	for size := int64(0); size < most; {
		select {
		case <-r.asked:
			return
		default:
		}
		one, err, ok := r.next()
		if !ok {
			return
		}
		if r.held = append(r.held, record{one, err}); one != nil {
			size += kept.Size(one)
		}
	}
}

// Rollouts reads as traj.Source does.
func (s *Source) Rollouts(ctx context.Context) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		r := s.begun.Swap(nil)
		if r == nil {
			s.Source.Rollouts(ctx)(yield)
			return
		}
		close(r.asked)
		<-r.idle
		defer r.stop()
		for i, one := range r.held {
			r.held[i] = record{}
			if !yield(one.rollout, one.err) {
				return
			}
		}
		for one, err, ok := r.next(); ok && yield(one, err); one, err, ok = r.next() {
		}
	}
}

// Stop ends a reading that nobody asked for.
func (s *Source) Stop() {
	if r := s.begun.Swap(nil); r != nil {
		close(r.asked)
		go func() {
			<-r.idle
			r.stop()
		}()
	}
}
