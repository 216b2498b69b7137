// Package faults collects all that is wrong with a record of options.
package faults

import (
	"errors"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// List holds errors of KindInput, each with its field. The zero value holds none.
type List struct {
	Of  string // is put before the name of each field
	all []error
}

// Add adds a fault of a field.
func (l *List) Add(field, format string, args ...any) {
	l.all = append(l.all, rollout.Errorf(rollout.KindInput, rollout.Where{Field: l.Of + field}, format, args...))
}

// Join adds what is wrong with records inside, nil for nothing.
func (l *List) Join(errs ...error) { l.all = append(l.all, errs...) }

// Count adds a fault of a number below 0.
func (l *List) Count(field string, n int) {
	if n < 0 {
		l.Add(field, "found %d, expected 0 or more", n)
	}
}

// Amount adds a fault of a number that is below 0 or not finite.
func (l *List) Amount(field string, x float64) {
	if !(x >= 0 && x-x == 0) {
		l.Add(field, "%g is not a finite number >= 0", x)
	}
}

// Word adds a fault of a word that is neither empty nor among those.
func Word[W ~string](l *List, field string, found W, words ...W) {
	if found != "" && !slices.Contains(words, found) {
		var all []string
		for _, w := range words {
			all = append(all, string(w))
		}
		l.Add(field, "found %q, expected one of %s", found, strings.Join(all, ", "))
	}
}

// Err is all faults, nil for none.
func (l *List) Err() error { return errors.Join(l.all...) }
