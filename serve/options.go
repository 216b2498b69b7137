package serve

import (
	"errors"
	"strings"

	"github.com/turnpack/turnpack/rollout"
)

// validate reports the required fields that are missing. The parts check their own options.
func (o Options) validate() error {
	var errs []error
	missing := func(field, what string) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: field}, "is missing, expected %s", what))
	}
	if len(o.Engines) == 0 {
		missing("Engines", "at least one engine")
	}
	if o.Journal == "" {
		missing("Journal", "a folder")
	}
	if o.Out == "" {
		missing("Out", "a folder")
	}
	if o.Exact && o.Model == nil {
		missing("Model", "the model that makes the exact prompts")
	}
	return errors.Join(errs...)
}

// inOptions returns the error of a part with the fields that it names as fields of Options, where they have the
// prefix to in place of from.
func inOptions(err error, from, to string) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range many.Unwrap() {
			errs = append(errs, inOptions(e, from, to))
		}
		return errors.Join(errs...)
	}
	e, ok := err.(*rollout.Error)
	if !ok || e.Kind != rollout.KindInput || e.Where.File != "" || e.Where.Rollout != "" {
		return err // not of the options but of what is recorded
	}
	if field, ok := strings.CutPrefix(e.Where.Field, from); ok && e.Where.Field != "" {
		moved := *e
		moved.Where.Field = to + field
		return &moved
	}
	return err
}
