package reward

import (
	"errors"

	"github.com/turnpack/turnpack/rollout"
)

// faults collects everything wrong with an options record.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, format, args...))
}

func (f *faults) finite(field string, x float64) {
	if !finite(x) {
		f.add(field, "%g is not finite", x)
	}
}

func (f *faults) nonNegative(field string, x float64) {
	if !(x >= 0) || !finite(x) {
		f.add(field, "%g is not a finite number >= 0", x)
	}
}

func (f faults) err() error { return errors.Join(f...) }
