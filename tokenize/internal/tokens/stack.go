package tokens

import (
	"slices"

	"github.com/turnpack/turnpack/rollout"
)

// Stack is a run of tokens that changes at its end. Where rows are views of it, ids
// and sources that were written never change: a run that differs from the one before
// in the middle moves to memory of its own.
type Stack struct {
	Viewed bool
	IDs    []rollout.TokenID
	Source []int32
	Flags  []rollout.Flag // of the run; the others may go on with what stood after it
}

func (s *Stack) len() int { return len(s.Flags) }

func (s *Stack) truncate(n int) {
	s.Flags = s.Flags[:n]
	if !s.Viewed {
		s.IDs, s.Source = s.IDs[:n], s.Source[:n]
	}
}

func (s *Stack) append(add Columns) {
	at := s.len()
	s.Flags = append(s.Flags, add.Flags...)
	n := min(len(s.IDs)-at, add.Len())
	k := 0
	for k < n && s.IDs[at+k] == add.IDs[k] && s.Source[at+k] == add.Source[k] {
		k++
	}
	if k == add.Len() {
		return
	}
	if same := at + k; same < len(s.IDs) {
		room := len(s.IDs) + len(s.IDs)/8 + add.Len()
		s.IDs = append(make([]rollout.TokenID, 0, room), s.IDs[:same]...)
		s.Source = append(make([]int32, 0, room), s.Source[:same]...)
	}
	s.IDs = append(s.IDs, add.IDs[k:]...)
	s.Source = append(s.Source, add.Source[k:]...)
}

// Columns is the run as it is now.
func (s *Stack) Columns() Columns {
	n := s.len()
	return Columns{s.IDs[:n:n], s.Source[:n:n], s.Flags[:n:n]}
}

// Row is the run with c after it, for good. A token is sampled in one row only, so
// each has flags of its own.
func (s *Stack) Row(c Columns) Columns {
	n := s.len()
	s.append(c)
	row := s.Columns()
	row.Flags = slices.Clone(row.Flags)
	s.truncate(n)
	return row
}
