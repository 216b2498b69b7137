package recipe

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/internal/faults"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/reward/detect"
	"github.com/turnpack/turnpack/reward/filter"
	"github.com/turnpack/turnpack/reward/offpolicy"
	"github.com/turnpack/turnpack/reward/shaping"
	"github.com/turnpack/turnpack/reward/weights"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/tokenize"
)

// Recipe is what a system does between rollouts and rows. The zero value is the default of
// turnpack.Pipeline.
type Recipe struct {
	Name  string // system@revision
	About string // one sentence
	// Source is the source of facts that have none of their own: repository@commit and file, or a
	// paper.
	Source string
	// Sources are the sources of single settings, by flag.
	Sources map[string]string

	Mode   tokenize.Mode
	Window string // as ctxwindow.Parse reads it, "" = the recorded contexts

	Scale     reward.OutcomePolicy
	Estimator reward.Estimator // with its override and clip
	// Tokens, when set, gives each token its own advantage, in place of Estimator.
	Tokens    *reward.TokenEstimator
	Detector  detect.Detector
	Shaping   shaping.Rules
	MaxTokens int // lossmask.Policy.MaxTokens

	// Loss is how the system averages its loss (weights.Preset), "" if no preset describes it. The
	// trainer averages; rows have such weights on demand only.
	Loss string
	// Trainer are settings of the trainer that rows do not hold.
	Trainer []Setting
	// Differs says where the recipe differs from the system, and why.
	Differs []string
}

// Setting is one fact of a recipe.
type Setting struct {
	Flag   string // of `turnpack convert`, without dashes; in Recipe.Trainer the trainer's name
	Value  string // as the flag takes it
	Source string `json:",omitempty"`
}

// Validate returns all faults of r, joined.
func (r Recipe) Validate() error {
	f := faults.List{Of: "Recipe."}
	_, err := ctxwindow.Parse(r.Window)
	f.Join(tokenize.Options{Mode: r.Mode}.Validate(), err)
	if r.MaxTokens < 0 {
		f.Add("MaxTokens", "found %d, expected 0 (no limit) or more", r.MaxTokens)
	}
	if _, ok := weights.Preset(r.Loss); !ok && r.Loss != "" {
		f.Add("Loss", "no aggregation is named %q", r.Loss)
	}
	if r.Tokens != nil {
		f.Join(r.Tokens.Validate())
	}
	f.Join(r.Scale.Validate(), r.Estimator.Validate(), r.Detector.Validate(), r.Shaping.Validate())
	return f.Err()
}

// Settings returns all facts of r that rows depend on, in a fixed order, each as the flag that
// changes it. Settings at their default are included; those have a source only if Sources names
// one.
func (r Recipe) Settings() []Setting {
	out, plain := r.settings(), Recipe{}.settings()
	for i := range out {
		if out[i].Source = r.Sources[out[i].Flag]; out[i].Source == "" && out[i].Value != plain[i].Value {
			out[i].Source = r.Source
		}
	}
	return out
}

func (r Recipe) settings() []Setting {
	s, e := &r.Shaping, &r.Estimator
	name, discount, age := cmp.Or(e.Name, reward.GRPO().Name), 1.0, "-1"
	if r.Tokens != nil {
		name, discount = r.Tokens.Name, cmp.Or(r.Tokens.Discount, 1)
	}
	off := shaping.OffPolicy{}
	if s.OffPolicy != nil {
		off = *s.OffPolicy
	}
	if s.MaxAge != nil {
		age = strconv.Itoa(int(*s.MaxAge))
	}
	return []Setting{
		{Flag: "mode", Value: string(cmp.Or(r.Mode, tokenize.Merged))},
		{Flag: "window", Value: cmp.Or(r.Window, "none")},
		{Flag: "max-tokens", Value: strconv.Itoa(r.MaxTokens)},
		{Flag: "scale", Value: cmp.Or(r.Scale.Outcome, "signed")},
		{Flag: "step-coef", Value: number(r.Scale.StepCoef)},
		{Flag: "infra-unresolved", Value: strconv.FormatBool(r.Scale.InfraUnresolved)},
		{Flag: "truncated-coef", Value: orNone(s.TruncatedCoef, number)},
		{Flag: "stop-properly", Value: strconv.FormatBool(s.StopProperly)},
		{Flag: "soft-overlong", Value: orNone(s.Soft, softText)},
		{Flag: "length-of", Value: word(s.ResponseLength, "sampled", "response")},
		{Flag: "reward-affine", Value: orNone(known(s.Affine), func(a shaping.Affine) string { return colons(a.Bias, a.Scale) })},
		{Flag: "reward-clip", Value: orNone(s.Clip, rangeText)},
		{Flag: "overlong", Value: word(s.MaskTruncated, "train", "mask")},
		{Flag: "max-age", Value: age},
		{Flag: "length-penalty", Value: orNone(s.Spending, func(s shaping.Spending) string { return colons(s.Output, s.Input, s.Turns) })},
		{Flag: "min-valid", Value: strconv.Itoa(s.MinValid)},
		{Flag: "min-solved", Value: strconv.Itoa(s.MinSolved)},
		{Flag: "min-unsolved", Value: strconv.Itoa(s.MinUnsolved)},
		{Flag: "group-filter", Value: orNone(s.Filter, func(f filter.Rule) string { return f.Name })},
		{Flag: "filter-raw", Value: strconv.FormatBool(s.FilterRaw)},
		{Flag: "importance-weights", Value: orNone(off.Weights, func(w offpolicy.Correction) string { return colons(w.Low, w.High) + word(w.Drop, "", ":zero") })},
		{Flag: "logprob-error", Value: orNone(known(off.MaxError), number)},
		{Flag: "estimator", Value: name},
		{Flag: "discount", Value: number(discount)},
		{Flag: "masked", Value: maskedText(e)},
		{Flag: "invalid-call-advantage", Value: orNone(e.Override.InvalidToolCall, number)},
		{Flag: "malformed-thinking-advantage", Value: orNone(e.Override.MalformedThinking, number)},
		{Flag: "detect", Value: word(r.Detector.Nemotron, "all", "nemotron")},
		{Flag: "advantage-clip", Value: orNone(e.Clip, rangeText)},
		{Flag: "keep", Value: s.Keep.String()},
		{Flag: "drop-zero", Value: strconv.FormatBool(s.DropZero)},
	}
}

// maskedText returns how masked rollouts count in the statistics, "preset" if that is the preset's
// own choice.
func maskedText(e *reward.Estimator) string {
	if e.Name == "" && e.Masked == "" {
		return "preset"
	}
	if preset, ok := reward.Preset(strings.TrimSuffix(e.Name, ":key")); ok && preset.Masked == e.Masked {
		return "preset"
	}
	return cmp.Or(string(e.Masked), "stay")
}

// Digest returns a hash of the name and settings of r, its loss and its off-policy bounds, but not
// of its descriptions.
func (r Recipe) Digest() string {
	b, _ := json.Marshal([]any{r.Name, r.settings(), r.Loss, r.Shaping.OffPolicy}) // none of these fails
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// colons returns numbers as a flag takes several.
func colons(all ...float64) string {
	var texts []string
	for _, x := range all {
		texts = append(texts, number(x))
	}
	return strings.Join(texts, ":")
}

// orNone returns the text of *v, "none" for nil.
func orNone[T any](v *T, text func(T) string) string {
	if v == nil {
		return "none"
	}
	return text(*v)
}

// known returns nil for the zero value.
func known[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

func word(on bool, off, text string) string {
	if on {
		return text
	}
	return off
}

func rangeText(r reward.Range) string { return colons(r.Low, r.High) }

func softText(o shaping.Overlong) string {
	return fmt.Sprintf("%d:%d:%s", o.Max, o.Cache, number(o.Penalty)) + word(o.Unbounded, "", ":unbounded")
}

// All returns the recipes.
func All() []Recipe {
	return []Recipe{
		swerl(), swerlPRM(), nemotron22(), nemotronPivot(), ssr(),
		slime(), verlGRPO(), dapo(), verlDrGRPO(), primeRL(), primeSWE(), skyRL(), areal(), trl(), neMoRL(),
	}
}

// shortRevision is how many digits identify a revision.
const shortRevision = 7

// Named returns the recipe of that name, with or without its revision. The revision may be
// shortened to 7 digits, or have more digits than here.
func Named(name string) (Recipe, error) {
	var names []string
	system, revision, revised := strings.Cut(name, "@")
	for _, r := range All() {
		own, of, _ := strings.Cut(r.Name, "@")
		same := of == revision || len(revision) >= shortRevision && (strings.HasPrefix(of, revision) || strings.HasPrefix(revision, of))
		if own == system && (!revised || same) {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return Recipe{}, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "recipe"}, "no recipe is named %q", name).
		WithFix("choose one of %s", strings.Join(names, ", "))
}

// preset returns an estimator of package reward, whose name must exist.
func preset(name string) reward.Estimator {
	e, _ := reward.Preset(name)
	return reward.ByKey(e)
}

// filterOf returns a filter of package filter, whose name must exist.
func filterOf(name string) *filter.Rule {
	all := filter.Presets()
	return &all[slices.IndexFunc(all, func(r filter.Rule) bool { return r.Name == name })]
}
