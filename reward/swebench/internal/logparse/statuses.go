package logparse

import (
	"iter"
	"maps"
	"strings"
)

// Status is the status of one test in a log. The five named values have a meaning in grading; a parser
// may store any other word of the log, which counts as neither passed nor failed.
type Status string

// The statuses with a meaning in grading.
const (
	Passed  Status = "PASSED"
	Failed  Status = "FAILED"
	Errored Status = "ERROR"
	Skipped Status = "SKIPPED"
	XFail   Status = "XFAIL"
)

// Statuses maps test ids to statuses in the order of first insertion. The zero
// value is empty and ready to use.
type Statuses struct {
	order []string
	of    map[string]Status
}

// Set stores the status of test. A later call for the same test replaces the status and keeps the
// position.
func (s *Statuses) Set(test string, status Status) {
	if _, known := s.of[test]; known {
		s.of[test] = status
		return
	}
	if s.of == nil {
		s.of = make(map[string]Status)
	}
	// Clone the names, so that they do not keep the whole log in memory.
	test = strings.Clone(test)
	s.of[test] = Status(strings.Clone(string(status)))
	s.order = append(s.order, test)
}

// Get returns the status of test and reports whether the log named it.
func (s *Statuses) Get(test string) (Status, bool) {
	st, ok := s.of[test]
	return st, ok
}

// Len returns the number of tests.
func (s *Statuses) Len() int { return len(s.order) }

// Order returns the test ids in the order of first insertion. The slice is
// shared: do not change it.
func (s *Statuses) Order() []string { return s.order }

// Map returns a fresh map of all statuses, never nil.
func (s *Statuses) Map() map[string]Status {
	m := make(map[string]Status, len(s.order))
	maps.Copy(m, s.of)
	return m
}

// All yields every test with its status, in order.
func (s *Statuses) All() iter.Seq2[string, Status] {
	return func(yield func(string, Status) bool) {
		for _, test := range s.order {
			if !yield(test, s.of[test]) {
				return
			}
		}
	}
}
