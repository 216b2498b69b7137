package main

import (
	"errors"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
)

type recipeCmd struct {
	Name string `arg:"" optional:"" help:"Recipe to print in full, with or without its revision."`
	JSON bool   `help:"Print it as JSON." name:"json"`
}

// Run lists the recipes, or prints one.
func (c *recipeCmd) Run(p *cli.Program) error {
	if c.Name == "" {
		return shape.List(p.Out, c.JSON)
	}
	r, err := recipe.Named(c.Name)
	if err != nil {
		return cli.Mistake(err)
	}
	return shape.Print(p.Out, r, c.JSON)
}

// shape sets the shaping rules of p, and the settings of its estimator that come with
// them.
func (c *convertCmd) shape(p *turnpack.Pipeline) error {
	var err error
	p.Shaping, err = c.Rules()
	p.Scale.InfraUnresolved = c.InfraUnresolved
	errs := []error{err}
	clip, err := shape.Interval("--advantage-clip", c.AdvantageClip)
	errs = append(errs, err)
	masked, set := map[string]reward.Choice{"stay": "", "leave": "leave"}[c.Masked]
	over := reward.Override{InvalidToolCall: c.InvalidCall.Number, MalformedThinking: c.MalformedThinking.Number}
	if c.Target == "megatron" {
		lost := func(flag string) {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: flag}, "does nothing with --target megatron, which reads no advantages").
				WithFix("choose another target, or --estimator grpo, --advantage-clip none"))
		}
		if known, ok := p.Estimator.(*reward.Estimator); ok && known.Unit == "step" || p.Tokens != nil {
			lost("--estimator")
		}
		if clip != nil {
			lost("--advantage-clip")
		}
	}
	if over == (reward.Override{}) && clip == nil && !set || p.NoAdvantages {
		return errors.Join(errs...)
	}
	if p.Tokens != nil {
		return errors.Join(append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--estimator"}, "%s takes no bounds of advantages, advantages of messages or rule for masked rollouts", p.Tokens.Name).
			WithFix("leave out --advantage-clip, --masked, --invalid-call-advantage and --malformed-thinking-advantage, which a recipe may bring: none and preset turn them off"))...)
	}
	e := reward.GRPO()
	if known, ok := p.Estimator.(*reward.Estimator); ok {
		e = *known
	}
	e.Override, e.Clip = over, clip
	if set {
		e.Masked = masked
	}
	p.Estimator = &e
	return errors.Join(append(errs, e.Validate())...)
}

// recipeMetadata returns the file metadata about the recipe that p follows: the named one
// with the changes made by flags.
func (c *convertCmd) recipeMetadata(p *turnpack.Pipeline) (map[string]string, error) {
	if c.Recipe == "" {
		return nil, nil
	}
	r, err := recipe.Named(c.Recipe)
	if err != nil {
		return nil, err
	}
	r.Mode, r.Window, r.MaxTokens, r.Scale, r.Detector, r.Shaping = p.Encode.Mode, c.Window, p.Mask.MaxTokens, p.Scale, p.Detector, p.Shaping
	r.Estimator = reward.GRPO()
	if p.NoAdvantages {
		r.Estimator = reward.Estimator{Name: "none"}
	} else if p.Tokens != nil {
		r.Tokens = p.Tokens
	} else if known, ok := p.Estimator.(*reward.Estimator); ok {
		r.Estimator = *known
	}
	return shape.Metadata(r)
}
