package serve

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/turnpack/turnpack/export/stream"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/rollout"
)

// validate reports the required fields that are missing. The parts check their own options.
func (o Options) validate() error {
	var l faults.List
	if len(o.Engines) == 0 {
		l.Add("Engines", "is missing, expected at least one engine")
	}
	if o.Journal == "" {
		l.Add("Journal", "is missing, expected a folder")
	}
	if o.Out == "" {
		l.Add("Out", "is missing, expected a folder")
	}
	l.Join(o.Groups.validate())
	if o.Exact && o.Model == nil {
		l.Add("Model", "is missing, expected the model that makes the exact prompts")
	}
	return l.Err()
}

func (o Groups) validate() error {
	l := faults.List{Of: "Groups."}
	if o.Rows == nil {
		l.Add("Rows", "is nil, expected a function")
	}
	l.Count("Size", o.Size)
	l.Count("Least", o.Least)
	l.Count("MaxUndelivered", o.MaxUndelivered)
	l.Count("StepGroups", o.StepGroups)
	l.Count("Deadline", int(o.Deadline))
	if o.MaxAge != nil {
		l.Count("MaxAge", int(*o.MaxAge))
	}
	if size := cmp.Or(max(0, o.Size), 8); o.Least > size {
		l.Add("Least", "is %d, a group has %d", o.Least, size)
	}
	return l.Err()
}

func (o Groups) withDefaults() Groups {
	o.Size = cmp.Or(o.Size, 8)
	o.Least = cmp.Or(o.Least, 1)
	o.MaxUndelivered = cmp.Or(o.MaxUndelivered, 64)
	o.Folder = o.Folder || o.StepGroups > 0
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Refused == nil {
		o.Refused = func(stream.Key, error) {}
	}
	return o
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
