// Package zero has the errors of zero values that do nothing, and of options that are less.
package zero

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/turnpack/turnpack/rollout"
)

// Value is the error of using the zero value of a type, which maker makes.
func Value(typ, maker string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: typ}, "is used as its zero value").WithFix("make it with %s", maker)
}

// NotNegative is the errors of options that are below 0, by the names of the fields.
func NotNegative[T int | int64 | time.Duration](fields map[string]T) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if n := fields[name]; n < 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: name}, "is %d, expected 0 for the default or more", n))
		}
	}
	return errors.Join(errs...)
}

// Rollout is the error of a nil rollout.
func Rollout() error {
	return (*rollout.Rollout)(nil).Check()
}
