package traj

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/turnpack/turnpack/rollout"
)

// Source reads the same dumps each time it is asked, for jobs that read their input twice.
// It is safe for concurrent use.
type Source struct {
	paths []string
	opt   Options

	mu          sync.Mutex
	report      *Report // nil before the first complete reading
	kept        map[string]*fileMemory
	memoryTaken bool // Memory returned kept, so later readings keep nothing
}

// NewSource returns a Source of paths with the options of Open. Standard input is refused:
// it can be read only once. So is OnError: failures are yielded, and the consumer decides.
func NewSource(paths []string, opt Options) (*Source, error) {
	if slices.Contains(paths, "-") {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: "-"}, "standard input can be read only once, and this job reads its input twice").WithFix("write it to a file first")
	}
	if opt.OnError != rollout.OnErrorSkip {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "Options.OnError"}, "a source yields its failures, so its consumer decides what they do").WithFix("leave it 0, and set Pipeline.OnError")
	}
	if _, err := Open(paths, opt); err != nil {
		return nil, err
	}
	return &Source{paths: slices.Clone(paths), opt: opt}, nil
}

// Rollouts yields every rollout and, in the place of a record that cannot be read, its
// failure. When ctx is done, it ends with the context's error.
func (s *Source) Rollouts(ctx context.Context) iter.Seq2[*rollout.Rollout, error] {
	return s.rollouts(ctx, nil)
}

// rollouts reads the paths once. setUp, if not nil, prepares a reader that skips rollouts of
// an earlier reading.
func (s *Source) rollouts(ctx context.Context, setUp func(*Reader)) iter.Seq2[*rollout.Rollout, error] {
	return func(yield func(*rollout.Rollout, error) bool) {
		r, err := Open(s.paths, s.opt)
		if err != nil {
			yield(nil, err)
			return
		}
		r.yieldErrors = true
		s.mu.Lock()
		taken := s.memoryTaken
		s.mu.Unlock()
		switch {
		case setUp != nil:
			setUp(r)
		case !taken:
			r.kept = map[string]*fileMemory{}
		}
		for out, err := range r.All() {
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if !yield(out, err) {
				return
			}
		}
		if setUp == nil {
			s.mu.Lock()
			report := *r.Report() // a pointer would keep the reader
			s.report, s.kept = &report, r.kept
			s.mu.Unlock()
		}
	}
}

// Report says what the latest complete reading read and skipped; it is empty before one.
func (s *Source) Report() *Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		return &Report{Formats: map[string]int{}}
	}
	return s.report
}
