// Package faults collects all faults of a record of options.
package faults

import (
	"errors"
	"slices"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// List collects errors of KindInput, each with its field. The zero value is an empty list.
type List struct {
	Of  string // prefix of the name of each field
	all []error
}

// Add adds a fault of the field.
func (l *List) Add(field, format string, args ...any) {
	l.all = append(l.all, rollout.Errorf(rollout.KindInput, rollout.Where{Field: l.Of + field}, format, args...))
}

// Join adds the errors of nested records; nil errors are ignored.
func (l *List) Join(errs ...error) { l.all = append(l.all, errs...) }

// Count adds a fault if n is below 0.
func (l *List) Count(field string, n int) {
	if n < 0 {
		l.Add(field, "found %d, expected 0 or more", n)
	}
}

// Amount adds a fault if x is below 0 or not finite.
func (l *List) Amount(field string, x float64) {
	if !(x >= 0 && x-x == 0) {
		l.Add(field, "%g is not a finite number >= 0", x)
	}
}

// Word adds a fault if found is neither empty nor one of words.
func Word[W ~string](l *List, field string, found W, words ...W) {
	if found != "" && !slices.Contains(words, found) {
		var all []string
		for _, w := range words {
			all = append(all, string(w))
		}
		l.Add(field, "found %q, expected one of %s", found, strings.Join(all, ", "))
	}
}

// Err returns all faults joined, nil if there are none.
func (l *List) Err() error { return errors.Join(l.all...) }
