package play

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/turnpack/turnpack/internal/atomic"
	"github.com/turnpack/turnpack/reward/ssr"
	"github.com/turnpack/turnpack/rollout"
)

// Bug is a valid artifact with the results of its solvers.
type Bug struct {
	Repository  string       `json:"repository"`
	Commit      string       `json:"commit"`
	Fingerprint string       `json:"fingerprint"`
	Parent      string       `json:"parent,omitempty"` // fingerprint of the first bug, for order two
	Order       int          `json:"order"`
	Strategy    Strategy     `json:"strategy"`
	Round       int          `json:"round"`
	Broken      []string     `json:"broken"` // tests broken by the bug
	Solved      int          `json:"solved"`
	Live        int          `json:"live"` // attempts that ended on their own
	Artifact    ssr.Artifact `json:"artifact"`
}

// Difficulty returns the share of live attempts that failed, 1 without live attempts.
func (b Bug) Difficulty() float64 {
	if b.Live == 0 {
		return 1
	}
	return 1 - float64(b.Solved)/float64(b.Live)
}

// Store is a set of bugs. It is not safe for concurrent use.
type Store struct{ bugs map[string]Bug }

// OpenStore reads the bugs of a file that Save wrote, which need not exist yet.
func OpenStore(path string) (*Store, error) {
	s := &Store{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{File: path}, "cannot be read: %w", err)
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var b Bug
		if err := json.Unmarshal(line, &b); err != nil {
			return nil, rollout.Errorf(rollout.KindFormat, rollout.Where{File: path, Line: n}, "no bug: %w", err)
		}
		s.put(b)
	}
	return s, nil
}

func (b Bug) key() string { return b.Repository + "\x00" + b.Commit + "\x00" + b.Fingerprint }

func (s *Store) has(b Bug) bool {
	if s == nil {
		return false
	}
	_, there := s.bugs[b.key()]
	return there
}

// put adds a bug, or adds its attempts to those of the stored bug.
func (s *Store) put(b Bug) {
	if known, there := s.bugs[b.key()]; there {
		known.Solved += b.Solved
		known.Live += b.Live
		b = known
	}
	if s.bugs == nil {
		s.bugs = map[string]Bug{}
	}
	s.bugs[b.key()] = b
}

// Bugs returns the stored bugs sorted by order, then by difficulty, the hardest first.
func (s *Store) Bugs() []Bug {
	if s == nil {
		return nil
	}
	var out []Bug
	for _, b := range s.bugs {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b Bug) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(b.Difficulty(), a.Difficulty()), cmp.Compare(a.key(), b.key()))
	})
	return out
}

// Save writes a file with one JSON line per bug, or replaces it.
func (s *Store) Save(path string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, bug := range s.Bugs() {
		if err := enc.Encode(bug); err != nil {
			return err
		}
	}
	return atomic.WriteFile(path, b.Bytes(), true)
}
