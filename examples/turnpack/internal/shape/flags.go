// Package shape defines the flags of shaping rules and recipes, and prints their effect.
package shape

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/rollout"
)

// Flags are the rules applied to rewards and groups before advantages are computed. An
// empty value is the default.
type Flags struct {
	Recipe string `help:"Settings of a system, which other flags override; turnpack recipe lists them." placeholder:"NAME" group:"Rewards:"`

	InfraUnresolved   bool     `help:"Count infrastructure failures as unresolved in the mean of their group; they are not trained." group:"Shaping:"`
	TruncatedCoef     Optional `help:"Multiply the rewards of truncated rollouts by this." placeholder:"NUMBER" group:"Shaping:"`
	StopProperly      bool     `help:"Reward 0 and no training for rollouts whose last turn did not finish with stop." group:"Shaping:"`
	SoftOverlong      string   `help:"Punish length: MAX:CACHE:PENALTY in tokens, linear from MAX less CACHE on; :unbounded falls on beyond MAX." placeholder:"MAX:CACHE:PENALTY" group:"Shaping:"`
	LengthOf          string   `help:"Which length: sampled (trained tokens of all rows) or response (longest row from its first trained token)." enum:",sampled,response" default:"" placeholder:"sampled|response" group:"Shaping:"`
	RewardAffine      string   `help:"Rewards become (reward + BIAS)·SCALE." placeholder:"BIAS:SCALE" group:"Shaping:"`
	RewardClip        string   `help:"Bounds of rewards." placeholder:"LOW:HIGH" group:"Shaping:"`
	Overlong          string   `help:"Truncated rollouts: train them, or mask them (overlong filtering)." enum:",train,mask" default:"" placeholder:"train|mask" group:"Shaping:"`
	Masked            string   `help:"Rewards of masked rollouts in the mean of their group: stay, leave, or preset, as the estimator's system has it." enum:",preset,stay,leave" default:"" placeholder:"preset|stay|leave" group:"Shaping:"`
	MaxAge            string   `help:"Leave out rollouts sampled more than so many policy versions before the newest of the batch; -1 = any." placeholder:"VERSIONS" group:"Shaping:"`
	LengthPenalty     string   `help:"Subtract from rewards the group's mean times weighted shares of output tokens, input tokens and turns, each relative to the group's largest, as prime-rl does; for rewards from 0 (--scale binary)." placeholder:"OUTPUT:INPUT:TURNS" group:"Shaping:"`
	MinValid          int      `help:"Leave out groups with fewer valid rollouts." group:"Shaping:"`
	MinSolved         int      `help:"Leave out groups with fewer solved rollouts; 1 leaves out those that nobody solves." group:"Shaping:"`
	MinUnsolved       int      `help:"Leave out groups with fewer unsolved rollouts; 1 leaves out those that all solve." group:"Shaping:"`
	GroupFilter       string   `help:"Leave out groups whose rewards are alike: none, default, or a system's own test, such as slime." placeholder:"NAME" group:"Shaping:"`
	FilterRaw         bool     `help:"The filter looks at rewards before they are shaped." group:"Shaping:"`
	ImportanceWeights string   `help:"If dumps hold the log probabilities of the trained policy: multiply loss weights by its ratio to the behaviour policy, bounded (0 = no bound; :zero masks tokens beyond the bounds instead)." placeholder:"LOW:HIGH" group:"Shaping:"`
	LogprobError      Optional `help:"Likewise: mask rows whose mean of exp(|difference of log probabilities|) is above this; none = no limit." placeholder:"NUMBER" group:"Shaping:"`
	Discount          *float64 `help:"Discount of the return per trained token, for estimators of tokens; 1 = none." placeholder:"NUMBER" group:"Shaping:"`
	AdvantageClip     string   `help:"Bounds of advantages." placeholder:"LOW:HIGH" group:"Shaping:"`
	Keep              string   `help:"Rejection sampling, for every target: rollouts that give rows, by reward>X, reward>=X, resolved, best (of each group) or best:N; with commas between where all must hold. Those rejected stay in the statistics of their group." placeholder:"RULE" group:"Shaping:"`
	DropZero          bool     `help:"Leave out rollouts whose advantage is 0." group:"Shaping:"`
}

// Optional is a number or none.
type Optional struct{ Number *float64 }

// UnmarshalText reads a number or none.
func (o *Optional) UnmarshalText(text []byte) error {
	if string(text) == "none" {
		o.Number = nil
		return nil
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return rollout.Errorf(rollout.KindInput, rollout.Where{}, "found %q, expected a number or none", text)
	}
	o.Number = &x
	return nil
}

// MarshalJSON writes the number, or null.
func (o Optional) MarshalJSON() ([]byte, error) { return json.Marshal(o.Number) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Optional) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &o.Number) }

// unlessNone returns a flag's value, or "" if it is none.
func unlessNone(s string) string {
	if s == "none" {
		return ""
	}
	return s
}

// numbers parses between least and most numbers separated by colons.
func numbers(flag, text string, least, most int) ([]float64, error) {
	parts := strings.Split(text, ":")
	var out []float64
	for _, part := range parts {
		x, err := strconv.ParseFloat(part, 64)
		if err != nil || math.IsNaN(x) {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: flag}, "found %q, expected numbers with colons between, or none", text)
		}
		out = append(out, x)
	}
	if len(out) < least || len(out) > most {
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: flag}, "found %d numbers in %q, expected %d", len(out), text, most)
	}
	return out, nil
}

// Interval parses LOW:HIGH; nil for none.
func Interval(flag, text string) (*reward.Range, error) {
	if unlessNone(text) == "" {
		return nil, nil
	}
	x, err := numbers(flag, text, 2, 2)
	if err != nil {
		return nil, err
	}
	return &reward.Range{Low: x[0], High: x[1]}, nil
}

// offPolicy returns the bounds between the behaviour policy and the trained policy, or
// nil if none is set.
func (f *Flags) offPolicy() (*shaping.OffPolicy, error) {
	var o shaping.OffPolicy
	if x := f.LogprobError.Number; x != nil {
		o.MaxError = *x
		if *x == 0 {
			return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--logprob-error"}, "found 0, expected 1 or more, or none")
		}
	}
	if text := unlessNone(f.ImportanceWeights); text != "" {
		text, zero := strings.CutSuffix(text, ":zero")
		x, err := numbers("--importance-weights", text, 2, 2)
		if err != nil {
			return nil, err
		}
		o.Weights = &offpolicy.Correction{Low: x[0], High: x[1], Drop: zero}
	}
	if o == (shaping.OffPolicy{}) {
		return nil, nil
	}
	return &o, nil
}

// Rules returns the shaping rules that the flags set.
func (f *Flags) Rules() (shaping.Rules, error) {
	r := shaping.Rules{TruncatedCoef: f.TruncatedCoef.Number, StopProperly: f.StopProperly, MinValid: f.MinValid, MinSolved: f.MinSolved, MinUnsolved: f.MinUnsolved,
		FilterRaw: f.FilterRaw, DropZero: f.DropZero, ResponseLength: f.LengthOf == "response", MaskTruncated: f.Overlong == "mask"}
	var errs []error
	read := func(flag, text string, n int, set func(x []float64)) {
		if text = unlessNone(text); text == "" {
			return
		}
		x, err := numbers(flag, text, n, n)
		if errs = append(errs, err); err == nil {
			set(x)
		}
	}
	if f.Recipe != "" {
		_, err := recipe.Named(f.Recipe)
		errs = append(errs, err)
	}
	if text := unlessNone(f.SoftOverlong); text != "" {
		text, unbounded := strings.CutSuffix(text, ":unbounded")
		x, err := numbers("--soft-overlong", text, 2, 3)
		if err == nil && (x[0] != float64(int32(x[0])) || x[1] != float64(int32(x[1]))) {
			err = rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--soft-overlong"}, "found %q, expected whole numbers of tokens", text)
		}
		if err == nil {
			x = append(x, 1)
			r.Soft = &shaping.Overlong{Max: int(x[0]), Cache: int(x[1]), Penalty: x[2], Unbounded: unbounded}
		}
		errs = append(errs, err)
	}
	var err error
	r.Keep, err = shaping.ParseKeep(f.Keep)
	errs = append(errs, err)
	read("--length-penalty", f.LengthPenalty, 3, func(x []float64) { r.Spending = &shaping.Spending{Output: x[0], Input: x[1], Turns: x[2]} })
	off, err := f.offPolicy()
	r.OffPolicy, errs = off, append(errs, err)
	read("--reward-affine", f.RewardAffine, 2, func(x []float64) {
		if r.Affine = (shaping.Affine{Bias: x[0], Scale: x[1]}); x[1] == 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--reward-affine"}, "found a scale of 0, expected another: all rewards would be 0"))
		}
	})
	read("--reward-clip", f.RewardClip, 2, func(x []float64) { r.Clip = &reward.Range{Low: x[0], High: x[1]} })
	if text := unlessNone(f.MaxAge); text != "" && text != "-1" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--max-age"}, "found %q, expected a number of versions, or -1", text))
		} else {
			age := int32(n)
			r.MaxAge = &age
		}
	}
	if name := unlessNone(f.GroupFilter); name != "" {
		var names []string
		for _, p := range filter.Presets() {
			base, _, _ := strings.Cut(p.Name, "@")
			if names = append(names, base); p.Name == name || base == name {
				r.Filter = &p
			}
		}
		if r.Filter == nil {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--group-filter"}, "no filter is named %q", name).
				WithFix("choose none, %s", strings.Join(names, ", ")))
		}
	}
	return r, errors.Join(append(errs, r.Validate())...)
}
