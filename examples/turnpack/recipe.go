package main

import (
	"errors"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/recipe"
	"github.com/turnpack/turnpack/reward"
)

type recipeCmd struct {
	Name string `arg:"" optional:"" help:"Recipe to print in full, with or without its revision."`
	JSON bool   `help:"Print it as JSON." name:"json"`
}

// Run lists the recipes, or prints one.
func (c *recipeCmd) Run(p *program) error {
	if c.Name == "" {
		return shape.List(p.out, c.JSON)
	}
	r, err := recipe.Named(c.Name)
	if err != nil {
		return &usageError{err}
	}
	return shape.Print(p.out, r, c.JSON)
}

// shape gives p the rules, and its estimator what of them is its own.
func (c *convertCmd) shape(p *turnpack.Pipeline) error {
	var err error
	p.Shaping, err = c.Rules()
	p.Scale.InfraUnresolved = c.InfraUnresolved
	errs := []error{err}
	clip, err := shape.Interval("--advantage-clip", c.AdvantageClip)
	errs = append(errs, err)
	masked, err := shape.Choice("--masked", c.Masked, "preset", reward.MaskedStay.String(), reward.MaskedLeave.String())
	errs = append(errs, err)
	over := reward.Override{InvalidToolCall: c.InvalidCall.Number, MalformedThinking: c.MalformedThinking.Number}
	if over == (reward.Override{}) && clip == nil && masked == 0 || p.NoAdvantages {
		return errors.Join(errs...)
	}
	e := reward.GRPO()
	if known, ok := p.Estimator.(*reward.Estimator); ok {
		e = *known
	}
	e.Override, e.Clip = over, clip
	if masked > 0 {
		e.Masked = reward.Masked(masked - 1)
	}
	p.Estimator = &e
	return errors.Join(append(errs, e.Validate())...)
}

// follows is the recipe that p follows in fact: the one named, with what flags changed.
func (c *convertCmd) follows(p *turnpack.Pipeline) (recipe.Recipe, error) {
	r, err := recipe.Named(c.Recipe)
	if err != nil {
		return r, err
	}
	r.Mode, r.Window, r.MaxTokens = p.Encode.Mode, c.Window, p.Mask.MaxTokens
	r.Scale, r.Detector = p.Scale, p.Detector
	off := r.Shaping.OffPolicy
	r.Shaping = p.Shaping
	r.Shaping.OffPolicy = off
	r.Estimator = reward.GRPO()
	if known, ok := p.Estimator.(*reward.Estimator); ok {
		r.Estimator = *known
	}
	if p.NoAdvantages {
		r.Estimator = reward.Estimator{Name: "none"}
	}
	return r, nil
}

// recipeMetadata is what a file says of the recipe it was made by.
func (c *convertCmd) recipeMetadata(p *turnpack.Pipeline) (map[string]string, error) {
	if c.Recipe == "" {
		return nil, nil
	}
	r, err := c.follows(p)
	if err != nil {
		return nil, err
	}
	return shape.Metadata(r)
}
