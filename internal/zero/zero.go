// Package zero has the errors of using a zero or nil value.
package zero

import "github.com/turnpack/turnpack/rollout"

// Value returns the error of using the zero value of type typ, which is to be made with maker.
func Value(typ, maker string) error {
	return rollout.Errorf(rollout.KindInput, rollout.Where{Field: typ}, "is used as its zero value").WithFix("make it with %s", maker)
}

// Rollout returns the error of a nil rollout.
func Rollout() error {
	return (*rollout.Rollout)(nil).Validate()
}
