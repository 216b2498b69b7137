package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/ctxwindow"
	"github.com/turnpack/turnpack/examples/turnpack/internal/cli"
	"github.com/turnpack/turnpack/examples/turnpack/internal/shape"
	"github.com/turnpack/turnpack/examples/turnpack/internal/weigh"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/lossmask"
	"github.com/turnpack/turnpack/reward"
	"github.com/turnpack/turnpack/rollout"
	"github.com/turnpack/turnpack/rollout/traj"
	"github.com/turnpack/turnpack/tokenize"
	"github.com/turnpack/turnpack/tokenize/lineage"
)

// Faults reports all wrong flags before any input is read.
func (c *convertCmd) Faults() error {
	errs := []error{c.check()}
	pipe, err := c.flags()
	pipe.Model = new(tokenize.Model) // withoutModel reports missing models by flag
	errs = append(errs, cli.Also(err, pipe.Validate()))
	if c.Model == "" {
		errs = append(errs, c.withoutModel())
	}
	if c.Estimator == "none" && c.Target != "none" && c.Target != "megatron" {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--estimator"}, "none gives rows no advantages, and %s trains by them", c.Target).
			WithFix("leave it out, and join results where the dumps have none (--rewards FILE)"))
	}
	_, err = weigh.New(c.Weights, c.GroupsPerStep)
	errs = append(errs, err)
	if all := append(traj.Formats(), "auto"); !slices.Contains(all, c.Format) {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--format"}, "no dump format is named %q", c.Format).WithFix("choose one of %s", strings.Join(all, ", ")))
	}
	if c.GroupBy != "auto" {
		errs = append(errs, traj.Options{GroupBy: c.GroupBy}.Validate())
	}
	if len(c.In)+len(c.More) == 0 {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--in"}, "no dump is named").WithFix("name files or folders"))
	}
	return errors.Join(errs...)
}

// withoutModel reports the flags that need a model.
func (c *convertCmd) withoutModel() error {
	var errs []error
	for _, n := range []struct {
		needs bool
		flag  string
	}{
		{c.Template != "", "--template"}, {c.StopRewrite, "--stop-rewrite"}, {c.NoReasoning, "--no-reasoning"},
		{c.Window != "none", "--window"}, {c.Mode == "whole", "--mode"}, {c.Drift != "fork" && c.Drift != "refuse", "--drift"},
		{c.Target == "megatron" && c.PadMultiple > 1, "--pad-multiple"},
	} {
		if n.needs {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: n.flag}, "needs a model, and none is given").WithFix("name its folder: --model FOLDER"))
		}
	}
	return errors.Join(errs...)
}

// readerOptions returns the reader options that the flags set.
func (c *convertCmd) readerOptions() (traj.Options, error) {
	o := traj.Options{Format: c.Format, Dedup: c.Dedup, JoinCalls: c.Join}
	if !c.DryRun {
		o.Except = c.Out
	}
	if c.GroupBy != "auto" {
		o.GroupBy = c.GroupBy
	}
	if c.System != "" {
		b, err := os.ReadFile(c.System)
		if err != nil {
			return o, rollout.Errorf(rollout.KindInput, rollout.Where{File: c.System, Field: "--system"}, "cannot be read: %w", err)
		}
		if !utf8.Valid(b) {
			return o, rollout.Errorf(rollout.KindInput, rollout.Where{File: c.System, Field: "--system"}, "the file is not UTF-8 text")
		}
		o.System = string(b)
	}
	if len(c.Rewards) > 0 {
		r, err := traj.LoadRewards(c.Rewards)
		if err != nil {
			return o, err
		}
		o.Rewards = []*traj.Rewards{r}
	}
	return o, nil
}

// pipeline returns the pipeline that the flags describe.
func (c *convertCmd) pipeline(ctx context.Context, model *tokenize.Model) (turnpack.Pipeline, error) {
	p, err := c.flags()
	p.Model = model
	if err == nil && c.StopRewrite {
		p.Encode.Drift.StopRewrites, err = model.StopRewrites(ctx)
	}
	return p, err
}

// flags returns the pipeline settings that need no model.
func (c *convertCmd) flags() (turnpack.Pipeline, error) {
	p := turnpack.Pipeline{Workers: c.Workers, Temperature: c.Temperature, Scale: reward.OutcomePolicy{StepCoef: c.StepCoef},
		Trace: c.traced(),
		Mask:  lossmask.Policy{MaxTokens: c.MaxTokens, NoReasoning: c.NoReasoning}}
	var errs []error
	mode, drift, edges := tokenize.Mode(c.Mode), c.Drift, c.Edges
	window, err := ctxwindow.Parse(c.Window)
	errs = append(errs, err)
	if _, none := window.(ctxwindow.None); !none {
		p.Window = window
	}
	p.Encode = tokenize.Options{Mode: mode, Specials: c.Specials, Edges: edges, PromptsBy: c.PromptsBy, Drift: lineage.Options{Drift: drift, MaxDropTokens: c.MaxDrop, MaxSubTokens: c.MaxSub}}
	errs = append(errs, c.applyTo(&p.Encode))
	for flag, limit := range map[string]int{"--max-drop-tokens": c.MaxDrop, "--max-sub-tokens": c.MaxSub} {
		if limit < -1 {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: flag}, "found %d, expected -1 (none) or more; 0 is the default", limit))
		}
	}
	overrides := c.InvalidCall.Number != nil || c.MalformedThinking.Number != nil
	for _, n := range []struct {
		idle            bool
		flag, with, fix string
	}{
		{c.StopRewrite && drift != "splice" && drift != "auto", "--stop-rewrite", "--drift " + c.Drift, "add --drift splice or auto"},
		{c.MaxDrop != 0 && drift != "realign" && drift != "auto", "--max-drop-tokens", "--drift " + c.Drift, "add --drift realign or auto"},
		{c.MaxSub != 0 && drift != "splice" && drift != "auto", "--max-sub-tokens", "--drift " + c.Drift, "add --drift splice or auto"},
		{drift != "fork" && mode != tokenize.Merged, "--drift", "--mode " + c.Mode, "leave it out, or add --mode merged"},
		{overrides && c.Estimator == "none", "--invalid-call-advantage and --malformed-thinking-advantage", "--estimator none", "choose an estimator"},
		{overrides && c.Target == "megatron", "--invalid-call-advantage and --malformed-thinking-advantage", "--target megatron, which reads no advantages", "leave them out"},
		{!overrides && c.Detect == "nemotron", "--detect", "no advantage for messages at fault", "add --invalid-call-advantage or --malformed-thinking-advantage"},
		{c.Discount != nil && *c.Discount != 1 && !shape.OfTokens(c.Estimator), "--discount", "--estimator " + c.Estimator, "leave it out, or choose an estimator of tokens such as verl_reinforce_pp"},
		{p.Window != nil && mode == tokenize.Whole, "--window", "--mode whole", "leave it out, or choose the mode merged or perstep"},
	} {
		if n.idle {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: n.flag}, "does nothing with %s", n.with).WithFix("%s", n.fix))
		}
	}
	if edges == "document" && mode == tokenize.Merged {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--edges"}, "merged rows cannot hold tokens that cross turns").WithFix("add --mode perstep or whole"))
	}
	p.Scale.Outcome = c.Scale
	for s := rollout.StatusCompleted; s <= rollout.StatusFailed; s++ {
		if s.String() == c.UnknownStatus {
			p.UnknownStatus = s
		}
	}
	switch c.Estimator {
	case "grpo":
	case "none":
		p.NoAdvantages = true
	default:
		if p.Tokens, err = c.Tokens(c.Estimator); p.Tokens == nil && err == nil {
			p.Estimator, err = shape.Estimator(c.Estimator)
		}
		errs = append(errs, err)
	}
	p.Detector.Nemotron = c.Detect == "nemotron"
	errs = append(errs, c.shape(&p))
	if c.PolicyVersion >= 0 {
		p.PolicyVersion = &c.PolicyVersion
	}
	if c.OnError == "stop" {
		p.OnError = rollout.OnErrorStop
	}
	for flag, share := range map[string]float64{"--min-fidelity": c.MinFidelity, "--max-stop-loss": c.MaxStopLoss} {
		if !(share >= 0 && share <= 1) {
			errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: flag}, "is %g, want a share of 0 to 1", share))
		}
	}
	if c.Workers < 0 {
		errs = append(errs, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--workers"}, "found %d, expected 0 (one per processor) or more", c.Workers))
	}
	return p, errors.Join(errs...)
}

// exportOptions returns the export options that the flags set.
func (c *convertCmd) exportOptions(model *tokenize.Model) export.Options {
	o := export.Options{Force: c.Force, Estimator: shape.Full(c.Estimator)}
	if model != nil {
		o.Tokenizer, o.Template = model.Tokenizer.Digest(), model.TemplateDigest()
	}
	return o
}
