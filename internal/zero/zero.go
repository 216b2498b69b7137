// Package zero has the error of types whose zero value does nothing.
package zero

import "github.com/turnpack/turnpack/rollout"

// Value is the error of using the zero value of a type, which maker makes.
func Value(typ, maker string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: typ}, "is used as its zero value").WithFix("make it with %s", maker)
}

// Rollout is the error of a nil rollout.
func Rollout() error {
	return (*rollout.Rollout)(nil).Validate()
}
