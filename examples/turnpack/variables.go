package main

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// templateFlags are the flags for the inputs of the chat template besides the
// conversation.
type templateFlags struct {
	TemplateKwargs string `help:"Variables of the chat template, such as enable_thinking, as a JSON object; those that a rollout records win." placeholder:"JSON"`
	Now            string `help:"Day, or time, of the run for templates that write the date: 2006-01-02 or 2006-01-02T15:04:05." placeholder:"DATE"`
}

// applyTo sets the options that the flags name.
func (f *templateFlags) applyTo(o *tokenize.Options) error {
	var errs []error
	if f.TemplateKwargs != "" {
		if err := json.Unmarshal([]byte(f.TemplateKwargs), &o.Kwargs); err != nil || o.Kwargs == nil {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--template-kwargs"}, "%q is no JSON object", f.TemplateKwargs).
				WithFix(`write it like '{"enable_thinking": false}'`))
		}
	}
	if f.Now != "" {
		var err error
		if o.Now, err = time.Parse("2006-01-02", f.Now); err != nil {
			o.Now, err = time.Parse("2006-01-02T15:04:05", f.Now)
		}
		if err != nil {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--now"}, "%q is no date", f.Now).WithFix("write it like 2026-01-15 or 2026-01-15T12:00:00"))
		}
	}
	return errors.Join(errs...)
}

// undated reports whether the template may write a date and --now is not given.
func (f *templateFlags) undated(m *tokenize.Model) bool {
	return f.Now == "" && m.Template != nil && strings.Contains(m.Template.Source(), "strftime_now")
}
