package main

import (
	"context"
	"strings"

	"github.com/turnpack/turnpack"
	"github.com/turnpack/turnpack/export"
	"github.com/turnpack/turnpack/export/target"
	"github.com/turnpack/turnpack/reward/weights"
	"github.com/turnpack/turnpack/rollout"
)

// weigher gives rows the loss weights of an aggregation. Those depend on all
// rows of an optimizer step, so a run that weighs goes through the input once
// more, to count.
type weigher struct {
	how     weights.Aggregation
	perStep int            // groups of a step, 0 = all
	stepOf  map[string]int // group → step
	steps   []stepCounts
	columns *export.Columns // of the first row, with weights
}

type stepCounts struct {
	weights weights.Totals
	target  target.Totals
	last    string // rollout counted last; its rows follow one another
}

// newWeigher reads --weights; nil means that weights stay at 0 and 1.
func newWeigher(name string, perStep int) (*weigher, error) {
	w := &weigher{perStep: perStep, stepOf: map[string]int{}}
	// Weights whose mean over the trained tokens is 1: a trainer that averages over
	// tokens then gets the mean that was asked for.
	modes := map[string]weights.Mode{"rollout-mean": weights.RolloutMean, "prompt-mean": weights.PromptMean, "sequence-mean": weights.SequenceMean}
	if mode, ok := modes[name]; ok {
		w.how = weights.Aggregation{Mode: mode, PerToken: true}
		return w, nil
	}
	if name == "none" {
		return nil, nil
	}
	how, ok := weights.Preset(name)
	if !ok || how.MicroBatch > 0 {
		var presets []string
		for _, p := range weights.Presets() {
			if p.MicroBatch == 0 {
				presets = append(presets, p.Name)
			}
		}
		return nil, rollout.Errorf(rollout.KindInput, rollout.Where{Field: "--weights"}, "found %q, expected none, rollout-mean, prompt-mean, sequence-mean or a trainer's own", name).
			WithFix("those are %s", strings.Join(presets, ", "))
	}
	w.how = how
	return w, nil
}

// count goes through the rows of src.
func (w *weigher) count(ctx context.Context, pipe turnpack.Pipeline, src turnpack.Source) error {
	_, err := pipe.Run(ctx, src, counter{w})
	return err
}

type counter struct{ *weigher }

// Write counts a row.
func (c counter) Write(s rollout.Sample) error {
	step, ok := c.stepOf[s.Group]
	if !ok {
		if c.perStep > 0 {
			step = len(c.stepOf) / c.perStep
		}
		c.stepOf[s.Group] = step
		if step == len(c.steps) {
			c.steps = append(c.steps, stepCounts{})
		}
	}
	if c.columns == nil {
		has := export.ColumnsOf(&s)
		has.Weights = true
		c.columns = &has
	}
	n := &c.steps[step]
	n.target.Trained += int64(s.Trained())
	if n.last != s.Rollout {
		n.target.Rollouts++
		n.last = s.Rollout
	}
	return n.weights.Add(weights.RowOf(&s.Sequence))
}

// mean says whether the weights are those that a target brings into the form its
// trainer reads.
func (w *weigher) mean() bool {
	return w != nil && w.how == weights.Aggregation{Mode: weights.RolloutMean, PerToken: true}
}

// totals are the counts of the step that a group belongs to.
func (w *weigher) totals(group string) target.Totals { return w.steps[w.stepOf[group]].target }

// weighing weighs rows on their way to a sink.
type weighing struct {
	*weigher
	sink
}

// Write passes on the weighted row.
func (w weighing) Write(s rollout.Sample) (err error) {
	factor := w.steps[w.stepOf[s.Group]].weights.Weight(weights.RowOf(&s.Sequence), w.how)
	if s.Sequence, err = weights.Apply(s.Sequence, factor); err != nil {
		return err
	}
	return w.sink.Write(s)
}
