package shape

import (
	"errors"
	"strings"

	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

// OfTokens reports whether an estimator computes an advantage for each token.
func OfTokens(name string) bool {
	_, ok := reward.TokenPreset(name)
	return ok
}

// Full returns the name of an estimator with its revision, which a command line may omit.
func Full(name string) string {
	if e, ok := reward.TokenPreset(name); ok {
		return e.Name
	}
	if e, err := Estimator(name); err == nil {
		return e.Name
	}
	return name
}

// Tokens returns the token estimator of that name, or nil if the name is of rollouts or
// steps.
func (f *Flags) Tokens(name string) (*reward.TokenEstimator, error) {
	e, ok := reward.TokenPreset(name)
	if !ok {
		return nil, nil
	}
	errs := []error{new(reward.TokenTable).Finish(e, nil, nil)}
	if f.Discount != nil && *f.Discount != 1 {
		if e.Discount = *f.Discount; !(e.Discount > 0 && e.Discount < 1) {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--discount"}, "found %g, expected a number above 0, up to 1", e.Discount))
		} else {
			errs = append(errs, e.Validate())
		}
	}
	return &e, errors.Join(errs...)
}

// Estimator returns the preset of that name for rollouts or steps, or an error if a run
// cannot use it.
func Estimator(name string) (*reward.Estimator, error) {
	refuse := func(format string, args ...any) error {
		return rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--estimator"}, format, args...).WithFix("choose none, %s", strings.Join(Estimators(), ", "))
	}
	base, byKey := strings.CutSuffix(name, ":key")
	e, ok := reward.Preset(base)
	if byKey {
		e = reward.ByKey(e)
	}
	if !ok {
		return &e, refuse("no preset is named %q", name)
	}
	if e.Unit == "step" {
		return &e, e.Validate() // steps are compared after all are known
	}
	if _, err := e.Statistics(nil); err != nil {
		if why, ok := errors.AsType[*rollout.Error](err); ok {
			return &e, refuse("%s", why.Msg)
		}
		return &e, err
	}
	return &e, nil
}

// Estimators returns the short names of the presets that a run can use.
func Estimators() []string {
	var out []string
	add := func(name string) {
		name, _, _ = strings.Cut(name, "@")
		out = append(out, name)
	}
	for _, e := range reward.Presets() {
		if _, err := e.Statistics(nil); err == nil || e.Unit == "step" {
			add(e.Name)
		}
	}
	for _, e := range reward.TokenPresets() {
		if e.Center != "baseline" {
			add(e.Name)
		}
	}
	return out
}
